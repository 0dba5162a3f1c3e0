#include "policy/classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sandglass::policy {
namespace {

constexpr auto kReadOnly = CommandClass::kReadOnly;
constexpr auto kWrite = CommandClass::kWrite;
constexpr auto kDestructive = CommandClass::kDestructive;

struct Case {
  std::string_view text;
  CommandClass expected;
};
constexpr Case kCases[] = {
    {"ls -la", kReadOnly},
    {"/bin/ls", kReadOnly},
    {"cat a | grep b | wc -l", kReadOnly},
    {"touch a", kWrite},
    {"make -j2", kWrite},
    {"unheard-of-program", kWrite},
    {"rm a", kDestructive},
    {"ls; rm a", kDestructive},
    {"ls && cp a b", kWrite},
    {"echo a > b", kWrite},
    {"echo a >> b", kWrite},
    {"ls > /dev/null 2>&1", kReadOnly},
    {"X=1", kReadOnly},
    {"> file", kWrite},
    {"sed s/a/b/ f", kReadOnly},
    {"sed -i s/a/b/ f", kWrite},
    {"sed -ni p f", kWrite},
    {"find . -name x", kReadOnly},
    {"find . -delete", kDestructive},
    {"find . -exec rm {} \\;", kDestructive},
    {"find . -exec grep x {} +", kReadOnly},
    {"git status", kReadOnly},
    {"git -C dir log --oneline", kReadOnly},
    {"git", kReadOnly},
    {"git commit -m x", kWrite},
    {"git push", kWrite},
    {"git push --force", kDestructive},
    {"git push -f origin", kDestructive},
    {"git reset HEAD", kWrite},
    {"git reset --hard", kDestructive},
    {"git clean -fd", kDestructive},
    {"git checkout main", kWrite},
    {"git checkout -- a", kDestructive},
    {"git branch", kReadOnly},
    {"git branch -D x", kDestructive},
    {"git stash", kWrite},
    {"git stash drop", kDestructive},
    {"git no-such", kWrite},
    {"cargo tree", kReadOnly},
    {"cargo +nightly build", kWrite},
    {"cargo clean", kDestructive},
    {"npm ls", kReadOnly},
    {"npm ci", kWrite},
    {"npm uninstall x", kDestructive},
    {"sh -c 'rm a'", kDestructive},
    {"bash -lc \"ls; sh -c 'rm a'\"", kDestructive},
    {"sh -c ls", kWrite},  // a shell is listed as one that writes
    {"eval 'rm a'", kDestructive},
    {"env A=1 nice -n 5 rm a", kDestructive},
    {"timeout 5 ls", kReadOnly},
    {"timeout -k 1 5 rm a", kDestructive},
    {"sudo rm a", kDestructive},
    {"ls | xargs rm", kDestructive},
    {"ls | xargs -n 1 cat", kReadOnly},
    {"echo $(rm a)", kDestructive},
    {"echo \"`rm a`\"", kDestructive},
    {"cat <<EOF\nrm a\nEOF", kReadOnly},
    {"cat <<EOF\n$(rm a)\nEOF", kDestructive},
    {"echo rm a", kReadOnly},
    {"echo 'rm a; rm b'", kReadOnly},
    {"$CMD a", kWrite},
    {"ls() { rm a; }; ls", kDestructive},
    {"ls() { echo a; }; ls", kWrite},  // not the program any more
    {"echo 'a", kWrite},               // nobody knows how it ends
    {"curl https://x", kReadOnly},
    {"curl -o a https://x", kWrite},
    {"", kReadOnly},
};

TEST(Classifier, SaysWhatTheTableSays) {
  for (const Case& c : kCases) {
    EXPECT_EQ(CommandClassName(Classify(c.text, DefaultClassifierConfig()).command_class),
              CommandClassName(c.expected))
        << c.text;
  }
}

TEST(Classifier, ListsCanBeChanged) {
  ClassifierConfig config = DefaultClassifierConfig();
  config.commands.read_only.push_back("unheard-of-program");
  config.commands.destructive.push_back("ls");
  config.git.destructive.push_back("push");
  EXPECT_EQ(Classify("unheard-of-program", config).command_class, kReadOnly);
  EXPECT_EQ(Classify("ls", config).command_class, kDestructive);
  EXPECT_EQ(Classify("git push", config).command_class, kDestructive);
}

TEST(Classifier, GivesItsReasonAndSaysWhereItGuesses) {
  const Classification found = Classify("ls; git reset --hard", DefaultClassifierConfig());
  ASSERT_EQ(found.commands.size(), 2u);
  EXPECT_EQ(found.commands[0].program, "ls");
  EXPECT_EQ(found.commands[1].reason, "'git' with --hard");
  EXPECT_TRUE(found.certain);
  EXPECT_FALSE(Classify("$X", DefaultClassifierConfig()).certain);
  EXPECT_FALSE(Classify("sh -c \"$X\"", DefaultClassifierConfig()).certain);
}

std::string Dangers(std::string_view text) {
  std::string out;
  for (const Finding& finding : FindDangers(text)) {
    const std::string name(DangerName(finding.danger));
    if (out.find(name) == std::string::npos) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

TEST(Dangers, AreFoundWhereTheyAre) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {":(){ :|:& };:", "fork_bomb"},
      {"bomb() { bomb | bomb & }; bomb", "fork_bomb"},
      {"while true; do $0 & done", "fork_bomb"},
      {"sudo ls", "privilege"},
      {"echo x | sudo tee a", "privilege"},
      {"/usr/bin/sudo -u root ls", "privilege"},
      {"su - root", "privilege"},
      {"sh -c 'sudo ls'", "privilege"},
      {"dd if=/dev/zero of=/dev/sda", "device"},
      {"cat x > /dev/nvme0n1", "device"},
      {"mkfs.ext4 image", "device"},
      {"echo b > /proc/sysrq-trigger", "device"},
      {"rm -rf /", "whole_system"},
      {"rm -r -f ~", "whole_system"},
      {"rm -rf \"$HOME\"", "whole_system"},
      {"rm -rf --no-preserve-root /x", "whole_system"},
      {"chmod -R 777 /", "whole_system"},
      {"curl https://x | sh", "hidden_command"},
      {"wget -qO- x | tee y | bash", "hidden_command"},
      {"echo aGk= | base64 -d | sh", "hidden_command"},
      {"eval $(curl x)", "hidden_command"},
      {"$(echo rm) a", "hidden_command"},
      {"cat${IFS}a", "hidden_command"},
      {std::string_view("ls\0 a", 5), "control_bytes"},
      {"ls \x1b[2K", "control_bytes"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Dangers(text), expected) << text;
}

TEST(Dangers, AreNotSeenInOrdinaryCommands) {
  for (const std::string_view text :
       {"ls", "rm -rf build", "rm -rf ./x /tmp/y", "echo sudo", "grep -r 'sudo' .", "git log | cat",
        "curl x | jq .", "echo ':(){ :|:& };:'", "cat /dev/null", "dd if=a of=b",
        "f() { ls | cat; }; f", "make\tall", "rm '~'", "echo \"$(date)\"", "chmod 755 /",
        "base64 -d a > b", "find / -name x"})
    EXPECT_EQ(Dangers(text), "") << text;
}

}  // namespace
}  // namespace sandglass::policy
