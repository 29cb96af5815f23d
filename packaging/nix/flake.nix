# Builds sidenote from this repository: `nix run 'path:.?dir=packaging/nix' -- --version`. Not evaluated by the test suite.
{
  description = "Searchable, linked memory in a folder of Markdown notes";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = builtins.fromTOML (builtins.readFile ../../Cargo.toml);
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = manifest.package.name;
          version = manifest.workspace.package.version;
          src = ../..;
          cargoLock.lockFile = ../../Cargo.lock;
          # The suite needs minutes and a writable home; the development workflow runs it.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = pkgs.lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform) ''
            $out/bin/sidenote man --dir man
            installManPage man/*.1
            for shell in bash zsh fish; do
              installShellCompletion --cmd sidenote --$shell <($out/bin/sidenote completions $shell)
            done
          '';
          meta = {
            description = manifest.package.description;
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "sidenote";
          };
        };
      });
    };
}
