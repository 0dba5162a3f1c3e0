#include "session/obeyed_files.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(ObeyedFiles, AreFoundInAnyFolder) {
  EXPECT_EQ(WhoObeys(".git/hooks/pre-commit"), "git runs it");
  EXPECT_EQ(WhoObeys("libs/one/.git/hooks/pre-commit"), "git runs it");
  EXPECT_EQ(WhoObeys("sub/.envrc"), "direnv runs it");
  EXPECT_EQ(WhoObeys(".vscode/tasks.json"), "VS Code obeys it");
  EXPECT_EQ(WhoObeys("one.code-workspace"), "VS Code obeys it");
  EXPECT_EQ(WhoObeys(".claude/commands/deep/x.md"), "Claude Code obeys it");
  EXPECT_EQ(WhoObeys(".git/modules/lib/config"), "git obeys it, and it can name programs");
  EXPECT_EQ(WhoObeys(".husky/_/husky.sh"), "git runs it, through husky");
}

TEST(ObeyedFiles, AreOnlyWhatTheTableSays) {
  for (const char* path :
       {"", "Makefile", "package.json", "hooks/pre-commit", ".git/HEAD", ".git/objects/config",
        ".git/hooks", ".vscode", "not.envrc", ".envrc/x", "src/CLAUDE.md.txt", "xCLAUDE.md",
        ".git/hooks/pre-commit.sample", ".git/config/x", ".github/workflows"})
    EXPECT_FALSE(WhoObeys(path)) << path;
}

}  // namespace
}  // namespace sandglass::session
