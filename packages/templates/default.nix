# nix-build -E 'with import <nixpkgs> {}; callPackage ./default.nix {}'
{ lib, stdenvNoCC, fetchurl }:

let
  version = "@VERSION@";
  archives = {
    x86_64-linux = { name = "admit-x86_64-linux.tar.gz"; sha256 = "@admit-x86_64-linux.tar.gz@"; };
    aarch64-linux = { name = "admit-aarch64-linux.tar.gz"; sha256 = "@admit-aarch64-linux.tar.gz@"; };
    x86_64-darwin = { name = "admit-x86_64-darwin.tar.gz"; sha256 = "@admit-x86_64-darwin.tar.gz@"; };
    aarch64-darwin = { name = "admit-arm64-darwin.tar.gz"; sha256 = "@admit-arm64-darwin.tar.gz@"; };
  };
  system = stdenvNoCC.hostPlatform.system;
  archive = archives.${system} or (throw "admit has no released binary for ${system}: build it from source");
in
stdenvNoCC.mkDerivation {
  pname = "admit";
  inherit version;
  src = fetchurl {
    url = "@BASE_URL@/${archive.name}";
    inherit (archive) sha256;
  };
  sourceRoot = ".";
  installPhase = "install -Dm755 admit $out/bin/admit";
  meta = {
    description = "Test admission webhooks as kube-apiserver calls them, without a cluster";
    homepage = "https://github.com/admit-dev/admit";
    license = lib.licenses.asl20;
    platforms = builtins.attrNames archives;
    mainProgram = "admit";
  };
}
