#include "policy/shell_lexer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace sandglass::policy {
namespace {

// Commands parted by " ; ", words by a blank, each expanded one with a $ behind it.
std::string Read(std::string_view text) {
  std::string out;
  for (const SimpleCommand& command : ReadShell(text).commands) {
    if (!out.empty()) out += " ; ";
    std::string words;
    for (const Word& word : command.words) {
      words += (words.empty() ? "<" : " <") + word.text + ">";
      if (word.kind == WordKind::kExpanded) words += "$";
    }
    for (const Redirect& redirect : command.redirects) words += " >" + redirect.target.text;
    out += words;
  }
  return out;
}

struct Case {
  std::string_view text, read;
};
constexpr Case kCases[] = {
    {"", ""},
    {"ls -l", "<ls> <-l>"},
    {"echo 'a b' \"c d\" e\\ f", "<echo> <a b> <c d> <e f>"},
    {"echo \"a\\\"b\\n\"", "<echo> <a\"b\\n>"},
    {"a && b || c; d & e | f", "<a> ; <b> ; <c> ; <d> ; <e> ; <f>"},
    {"a\nb", "<a> ; <b>"},
    {"a \\\n b", "<a> <b>"},
    {"a # b\nc#d", "<a> ; <c#d>"},
    {"X=1 Y+=2 env Z=3", "<env> <Z=3>"},
    {"X=1", ""},
    {"a > f 2>&1 >> g < h", "<a> >f >1 >g >h"},
    {"a &> f", "<a> >f"},
    {"> f", " >f"},
    {"echo $HOME", "<echo> <$HOME>$"},
    {"echo '$HOME' \\$HOME", "<echo> <$HOME> <$HOME>"},
    {"echo $(rm a) b", "<rm> <a> ; <echo> <$(rm a)>$ <b>"},
    {"echo \"$(rm \"a b\")\"", "<rm> <a b> ; <echo> <$(rm \"a b\")>$"},
    {"echo `rm a`", "<rm> <a> ; <echo> <`rm a`>$"},
    {"diff <(sort a) b", "<sort> <a> ; <diff> <<(sort a)>$ <b>"},
    {"echo $((1+2))", "<echo> <$((1+2))>$"},
    {"echo ${x:-$(rm a)}", "<rm> <a> ; <echo> <${x:-$(rm a)}>$"},
    {"(a; b)", "<a> ; <b>"},
    {"{ a; }", "<a>"},
    {"if a; then b; else c; fi", "<a> ; <b> ; <c>"},
    {"while ! a; do b; done", "<a> ; <b>"},
    {"for x in a b; do rm $x; done", "<rm> <$x>$"},
    {"f() { rm a; }; f", "<rm> <a> ; <f>"},
    {"[[ a == b ]] && c", "<c>"},
    {"cat <<EOF\nrm -rf /\nEOF\nls", "<cat> >EOF ; <ls>"},
    {"cat <<EOF\n$(rm a)\nEOF\nls", "<cat> >EOF ; <rm> <a> ; <ls>"},
    {"cat <<'EOF'\n$(rm a)\nEOF\nls", "<cat> >EOF ; <ls>"},
    {"cat <<-EOF\n\tx\n\tEOF\nls", "<cat> >EOF ; <ls>"},
    {"cat <<< 'x'; ls", "<cat> >x ; <ls>"},
    {"ls *.c a?", "<ls> <*.c>$ <a?>$"},
    {"ls '*.c'", "<ls> <*.c>"},
    {"$'\\x72m' a", "<\\x72m>$ <a>"},
};

TEST(ShellLexer, ReadsWhatTheTableSays) {
  for (const Case& c : kCases) EXPECT_EQ(Read(c.text), c.read) << c.text;
}

TEST(ShellLexer, SaysWhenATextHasNoEnd) {
  for (const std::string_view text : {"echo 'a", "echo \"a", "echo $(a", "echo `a", "a \\", "${a"})
    EXPECT_FALSE(ReadShell(text).complete) << text;
  EXPECT_TRUE(ReadShell("echo 'a'").complete);
}

TEST(ShellLexer, TellsPipelinesApart) {
  const ShellText text = ReadShell("a | b; c | d | e");
  ASSERT_EQ(text.commands.size(), 5u);
  EXPECT_EQ(text.commands[0].pipeline, text.commands[1].pipeline);
  EXPECT_NE(text.commands[1].pipeline, text.commands[2].pipeline);
  EXPECT_EQ(text.commands[2].pipeline, text.commands[4].pipeline);
}

TEST(ShellLexer, DepthAndSizeAreBounded) {
  std::string deep, arithmetic, braces;
  for (int i = 0; i < 50'000; ++i) {
    deep += "$(";
    arithmetic += "$((";
    braces += "${a:-$((";
  }
  const std::clock_t start = std::clock();
  EXPECT_FALSE(ReadShell(deep + std::string(50'000, ')')).complete);
  (void)ReadShell(arithmetic + "))");
  (void)ReadShell(braces + "))}");
  EXPECT_FALSE(ReadShell(std::string(2 << 20, 'a')).complete);
  EXPECT_LE(ReadShell(std::string(1 << 20, ';')).commands.size(), kMostCommands);
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "a;";
  EXPECT_EQ(ReadShell(many).commands.size(), kMostCommands);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace sandglass::policy
