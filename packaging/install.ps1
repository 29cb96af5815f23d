# Installs sidenote for one user on Windows: downloads the archive, checks its SHA-256, puts the program into
# %LOCALAPPDATA%\Programs\sidenote and adds that folder to the user's PATH. With -Uninstall it takes both back.
#
# SIDENOTE_DOWNLOADS   address of the folder with the archives and SHA256SUMS
# SIDENOTE_BIN         folder for the program
param([switch]$Uninstall)
$ErrorActionPreference = 'Stop'

$version = '@VERSION@'
$downloads = if ($env:SIDENOTE_DOWNLOADS) { $env:SIDENOTE_DOWNLOADS } else { '@DOWNLOADS@' }
$bin = if ($env:SIDENOTE_BIN) { $env:SIDENOTE_BIN } else { Join-Path $env:LOCALAPPDATA 'Programs\sidenote' }
$program = Join-Path $bin 'sidenote.exe'

$path = [Environment]::GetEnvironmentVariable('Path', 'User')
$folders = @($path -split ';' | Where-Object { $_ })

if ($Uninstall) {
    if (-not (Test-Path -LiteralPath $program)) { throw "there is no $program; set SIDENOTE_BIN to the folder with the program" }
    Remove-Item -LiteralPath $program
    if (-not (Get-ChildItem -LiteralPath $bin -Force)) { Remove-Item -LiteralPath $bin }
    [Environment]::SetEnvironmentVariable('Path', (($folders | Where-Object { $_ -ne $bin }) -join ';'), 'User')
    Write-Output "removed $program; indexes (.sidenote in each vault) and settings are kept"
    return
}

if (-not [Environment]::Is64BitOperatingSystem) { throw 'there is no archive for 32-bit Windows' }
$temporary = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory -Path $temporary | Out-Null
try {
    $sums = Join-Path $temporary 'SHA256SUMS'
    Invoke-WebRequest -UseBasicParsing -Uri "$downloads/SHA256SUMS" -OutFile $sums
    $archive = $null
    foreach ($target in 'x86_64-pc-windows-msvc', 'x86_64-pc-windows-gnu') {
        $name = "sidenote-$version-$target.zip"
        $line = Get-Content -LiteralPath $sums | Where-Object { ($_ -split '\s+', 2)[1] -eq $name }
        if ($line) { $archive = $name; $expected = ($line -split '\s+', 2)[0]; break }
    }
    if (-not $archive) { throw "$downloads has no archive for Windows" }
    $file = Join-Path $temporary $archive
    Invoke-WebRequest -UseBasicParsing -Uri "$downloads/$archive" -OutFile $file
    $actual = (Get-FileHash -LiteralPath $file -Algorithm SHA256).Hash
    if ($actual -ne $expected) { throw "the SHA-256 of $archive is $actual, but SHA256SUMS says $expected; nothing was installed" }
    Expand-Archive -LiteralPath $file -DestinationPath $temporary
    New-Item -ItemType Directory -Path $bin -Force | Out-Null
    Copy-Item -LiteralPath (Join-Path $temporary "sidenote-$version-$target\sidenote.exe") -Destination $program -Force
} finally {
    Remove-Item -LiteralPath $temporary -Recurse -Force
}
if ($folders -notcontains $bin) {
    [Environment]::SetEnvironmentVariable('Path', (($folders + $bin) -join ';'), 'User')
    Write-Output "added $bin to PATH; open a new terminal"
}
Write-Output "installed $(& $program --version) as $program"
