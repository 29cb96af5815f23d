class Sidenote < Formula
  desc "Searchable, linked memory in a folder of Markdown notes"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@DOWNLOAD_BLOCKS@

  def install
    bin.install "sidenote"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/sidenote.bash" => "sidenote"
    zsh_completion.install "completions/_sidenote"
    fish_completion.install "completions/sidenote.fish"
  end

  test do
    (testpath/"notes/Heron.md").write "# Heron\n\nThe heron stands in the reeds.\n"
    assert_match "Heron.md", shell_output("#{bin}/sidenote --vault notes search heron --mode bm25")
  end
end
