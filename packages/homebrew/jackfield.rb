# The formula of a Homebrew tap. `cargo xtask dist` replaces the names between @ signs.
class Jackfield < Formula
  desc "Runs any coding agent as a durable session that any client can attach to"
  homepage "@RELEASES@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@ARCHIVES@
  def install
    bin.install "bin/jackfield"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/jackfield"
    zsh_completion.install "share/zsh/site-functions/_jackfield"
    fish_completion.install "share/fish/vendor_completions.d/jackfield.fish"
    doc.install Dir["share/doc/jackfield/*"]
  end

  service do
    run [opt_bin/"jackfield", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_equal "jackfield #{version}", shell_output("#{bin}/jackfield --version").strip
  end
end
