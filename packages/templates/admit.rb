class Admit < Formula
  desc "Test admission webhooks as kube-apiserver calls them, without a cluster"
  homepage "https://github.com/admit-dev/admit"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@BASE_URL@/admit-arm64-darwin.tar.gz"
      sha256 "@admit-arm64-darwin.tar.gz@"
    end
    on_intel do
      url "@BASE_URL@/admit-x86_64-darwin.tar.gz"
      sha256 "@admit-x86_64-darwin.tar.gz@"
    end
  end

  on_linux do
    on_arm do
      url "@BASE_URL@/admit-aarch64-linux.tar.gz"
      sha256 "@admit-aarch64-linux.tar.gz@"
    end
    on_intel do
      url "@BASE_URL@/admit-x86_64-linux.tar.gz"
      sha256 "@admit-x86_64-linux.tar.gz@"
    end
  end

  def install
    bin.install "admit"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/admit --version")
  end
end
