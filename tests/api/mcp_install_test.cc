// `sandglass mcp install`: entries in the files of other programs, and nothing else touched there.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/api/line_client.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class McpInstall : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* variable : {"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"})
      ::unsetenv(variable);
    place_.state = workspace_.root() + "/state";
    place_.home = workspace_.root() + "/home";
    std::filesystem::create_directories(place_.state);
    std::filesystem::create_directories(place_.home);
  }
  // Its exit code; what it said is in said_.
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), {"mcp", "install"});
    PlainProgram program(place_, words);
    const int code = program.Wait();
    said_ = program.Said() + program.Log();
    return code;
  }
  std::string Path(const std::string& rel) const { return place_.home + "/" + rel; }
  void Write(const std::string& rel, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(Path(rel)).parent_path());
    std::ofstream(Path(rel)) << content;
  }
  std::string Read(const std::string& rel) {
    std::ifstream file(Path(rel));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // What a program says that talks to people.
  class PlainProgram : public LineClient {
   public:
    using LineClient::LineClient;
    std::string Said() const { return plain_; }
    int Wait() {
      CloseInput();
      char buffer[4096];
      for (ssize_t got; (got = ::read(output_fd(), buffer, sizeof(buffer))) > 0;)
        plain_.append(buffer, static_cast<size_t>(got));
      CloseOutput();
      return LineClient::Wait();
    }

   private:
    std::string plain_;
  };

  TempWorkspace workspace_;
  LineClient::Place place_;
  std::string said_;
};

TEST_F(McpInstall, EachClientGetsItsEntryAndLosesItAgain) {
  struct Row {
    const char *client, *file, *expected;
  };
  constexpr Row kRows[] = {
      {"claude-code", ".claude.json", R"("args": ["mcp"])"},
      {"cursor", ".cursor/mcp.json", R"("args": ["mcp", "-p", "${workspaceFolder}"])"},
      {"vscode", ".config/Code/User/mcp.json", R"("servers": {)"},
      {"codex", ".codex/config.toml", R"([mcp_servers.sandglass])"},
  };
  for (const Row& row : kRows) {
    ASSERT_EQ(Run({row.client, "--yes"}), 0) << said_;
    EXPECT_THAT(said_, HasSubstr(row.expected));
    EXPECT_THAT(Read(row.file), HasSubstr(row.expected));
    EXPECT_THAT(Read(row.file), HasSubstr(SANDGLASS_BINARY));
    struct stat info{};
    ASSERT_EQ(::stat(Path(row.file).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(Run({row.client, "--yes"}), 0);
    EXPECT_THAT(said_, HasSubstr("nothing to do"));
    EXPECT_EQ(Run({row.client, "--yes", "--remove"}), 0) << said_;
    EXPECT_THAT(Read(row.file), Not(HasSubstr("\"sandglass\"")));
    EXPECT_THAT(Read(row.file), Not(HasSubstr("[mcp_servers")));
  }
}

TEST_F(McpInstall, AClientThatHasNoProjectOfItsOwnGetsOneNamed) {
  ASSERT_EQ(Run({"claude-desktop", "--yes", "-p", workspace_.project()}), 0) << said_;
  EXPECT_THAT(Read(".config/Claude/claude_desktop_config.json"),
              HasSubstr(fmt::format(R"("-p", "{}")", workspace_.project())));
}

TEST_F(McpInstall, WhatIsThereStaysAsItIs) {
  const std::string before =
      "{\n   \"theme\" : \"dark\",\n   \"mcpServers\" : {\n      \"other\" : { \"command\" : \"x\" "
      "}\n   "
      "},\n   \"n\" : 1.50\n}\n";
  Write(".claude.json", before);
  ASSERT_EQ(::chmod(Path(".claude.json").c_str(), 0640), 0);
  std::filesystem::create_directories(Path("dotfiles"));
  std::filesystem::rename(Path(".claude.json"), Path("dotfiles/claude.json"));
  std::filesystem::create_symlink("dotfiles/claude.json", Path(".claude.json"));
  ASSERT_EQ(Run({"claude-code", "--yes"}), 0) << said_;
  EXPECT_THAT(Read(".claude.json"), HasSubstr("\"n\" : 1.50"));
  EXPECT_THAT(Read(".claude.json"), HasSubstr("\"other\" : { \"command\" : \"x\" }"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path(".claude.json")));
  struct stat info{};
  ASSERT_EQ(::stat(Path(".claude.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  ASSERT_EQ(Run({"claude-code", "--yes", "--remove"}), 0) << said_;
  EXPECT_EQ(Read(".claude.json"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("dotfiles")), {}), 1);
}

TEST_F(McpInstall, WhatAnEntryHadIsShownBeforeItIsReplaced) {
  const std::string json = R"({"mcpServers": {"sandglass": {"env": {"A": "mine"}}}})";
  Write(".cursor/mcp.json", json);
  ASSERT_EQ(Run({"cursor", "--dry-run"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("replaces:\n\"sandglass\": {\"env\": {\"A\": \"mine\"}}\n"));
  EXPECT_NE(Run({"cursor"}), 0);
  EXPECT_THAT(said_, HasSubstr("\"mine\""));
  EXPECT_EQ(Read(".cursor/mcp.json"), json);
  Write(".codex/config.toml", "[mcp_servers.sandglass.env]\nA = 'mine\x1b[2J'\n# z\n[z]\n");
  ASSERT_EQ(Run({"codex", "--yes", "--dry-run"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("replaces:\n[mcp_servers.sandglass.env]\nA = 'mine\\x1b[2J'\n"));
  ASSERT_EQ(Run({"codex", "--yes", "--remove"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("A = 'mine"));
  ASSERT_EQ(Run({"codex", "--yes"}), 0) << said_;
  EXPECT_THAT(said_, Not(HasSubstr("replaces")));
}

TEST_F(McpInstall, ALinkToNothingIsRefusedAndStays) {
  std::filesystem::create_symlink("dotfiles/claude.json", Path(".claude.json"));
  EXPECT_NE(Run({"claude-code", "--yes"}), 0);
  EXPECT_THAT(said_, HasSubstr("a link to what is not there"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path(".claude.json")));
  EXPECT_FALSE(std::filesystem::exists(Path("dotfiles")));
}

TEST_F(McpInstall, AFileKeepsItsOwnerAndItsGroup) {
  // Only root can give files away.
  const bool root = ::geteuid() == 0;
  const uid_t owner = root ? 1234 : ::geteuid();
  const gid_t group = root ? 2345 : ::getegid();
  Write(".claude.json", "{}\n");
  ASSERT_EQ(::chown(Path(".claude.json").c_str(), owner, group), 0);
  ASSERT_EQ(::chmod(Path(".claude.json").c_str(), 0640), 0);
  ASSERT_EQ(Run({"claude-code", "--yes"}), 0) << said_;
  EXPECT_THAT(Read(".claude.json"), HasSubstr("mcpServers"));
  struct stat info{};
  ASSERT_EQ(::stat(Path(".claude.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, owner);
  EXPECT_EQ(info.st_gid, group);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(McpInstall, AFileThatCannotBeUnderstoodIsRefusedAndLeftAlone) {
  for (const std::string& bad : {std::string("{ // mine\n}"), std::string("[]"),
                                 std::string("{\"mcpServers\": 3}"), std::string("{\"a\": ")}) {
    Write(".cursor/mcp.json", bad);
    EXPECT_NE(Run({"cursor", "--yes"}), 0) << bad;
    EXPECT_THAT(said_, HasSubstr("left as it is"));
    EXPECT_EQ(Read(".cursor/mcp.json"), bad);
  }
  Write(".codex/config.toml", "mcp_servers = {}\n");
  EXPECT_NE(Run({"codex", "--yes"}), 0);
  EXPECT_EQ(Read(".codex/config.toml"), "mcp_servers = {}\n");
  std::filesystem::create_directories(Path(".claude.json"));
  EXPECT_NE(Run({"claude-code", "--yes"}), 0);
}

TEST_F(McpInstall, NothingIsWrittenWithoutAYes) {
  EXPECT_EQ(Run({"cursor", "--dry-run"}), 0);
  EXPECT_THAT(said_, HasSubstr("mcpServers"));
  EXPECT_NE(Run({"cursor"}), 0);
  EXPECT_FALSE(std::filesystem::exists(Path(".cursor")));
  EXPECT_NE(Run({}), 0);
  EXPECT_THAT(said_, HasSubstr("claude-desktop"));
  EXPECT_NE(Run({"emacs", "--yes"}), 0);
}

}  // namespace
}  // namespace sandglass::test
