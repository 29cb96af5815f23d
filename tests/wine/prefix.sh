# Prepares the Wine prefix: sourced by run.sh and start.sh, which start Windows programs.
# WINEPREFIX names the folder that Wine keeps its drive in; without it, that is target/wine.
wine_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export WINEPREFIX=${WINEPREFIX:-$wine_folder/../../target/wine} WINEDEBUG=${WINEDEBUG:--all}
mkdir -p "$WINEPREFIX"
[[ -e $WINEPREFIX/system.reg ]] || wineboot --init

# Versions of Wine before 9 lack the library from which Rust takes random numbers.
random=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
[[ -e $random ]] || x86_64-w64-mingw32-gcc -shared -o "$random" "$wine_folder/random.c" -ladvapi32
