// Files of the working directories, and nothing else.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

class ServeFiles : public ServeFixture {
 protected:
  void SetUp() override {
    ServeFixture::SetUp();
    if (!IsSkipped()) Start();
  }
  std::string Read(const std::string& path) {
    return client_->Result("fs.read", fmt::format(R"({{"path":"{}"}})", path))
        .GetString("content")
        .value();
  }
};

TEST_F(ServeFiles, ReadsTextAndBytesAndParts) {
  EXPECT_EQ(Read("src/main.c"), "int main;\n");
  EXPECT_EQ(Read(workspace_.project() + "/keep.txt"), "kept\n");
  workspace_.WriteFile("bytes", std::string("\xff\0\x01", 3));
  const Json bytes = client_->Result("fs.read", R"({"path":"bytes"})");
  EXPECT_EQ(bytes.GetString("encoding").value(), "base64");
  EXPECT_EQ(Must(Base64Decode(bytes.GetString("content").value())), std::string("\xff\0\x01", 3));
  const Json part = client_->Result("fs.read", R"({"path":"keep.txt","offset":1,"limit":2})");
  EXPECT_EQ(part.GetString("content").value(), "ep");
  EXPECT_EQ(part.GetInt("next_offset").value(), 3);
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"bytes","encoding":"utf8"})"), "invalid_argument");
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"missing"})"), "not_found");
  EXPECT_EQ(client_->Code("fs.read", R"({"path":"src"})"), "invalid_argument");
}

TEST_F(ServeFiles, SA_10_APathThatClimbsOutIsRefused) {
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "src/../../x", "out", "out/passwd"}) {
    if (!workspace_.Exists("out"))
      MustCall(::symlink("/etc", workspace_.Path("out").c_str()), "link");
    EXPECT_EQ(client_->Code("fs.read", fmt::format(R"({{"path":"{}"}})", path)), "outside_root")
        << path;
  }
  MustCall(::symlink("src/main.c", workspace_.Path("inside").c_str()), "link");
  EXPECT_EQ(Read("inside"), "int main;\n");
}

TEST_F(ServeFiles, SA_11_AnAbsolutePathElsewhereIsNotListed) {
  EXPECT_EQ(client_->Code("fs.list", R"({"path":"/etc"})"), "outside_root");
  EXPECT_EQ(client_->Code("fs.list", R"({"path":".."})"), "outside_root");
  const Json listed = client_->Result("fs.list");
  EXPECT_EQ(listed.GetInt("total").value(), 2);
  EXPECT_EQ((*listed.Find("entries")->AsArray())[0].GetString("name").value(), "keep.txt");
  const Json page = client_->Result("fs.list", R"({"offset":1,"limit":1})");
  EXPECT_EQ((*page.Find("entries")->AsArray())[0].GetString("name").value(), "src");
}

TEST_F(ServeFiles, SA_12_AnOversizedWriteIsRefused) {
  const std::string large(700 << 10, 'x');
  EXPECT_EQ(client_->Code("fs.write", fmt::format(R"({{"path":"a","content":"{}"}})", large)),
            "limit");
  client_->SendLine(fmt::format(
      R"({{"type":"fs.write","request_id":"w","payload":{{"path":"a","content":"{}"}}}})",
      std::string(2 << 20, 'x')));
  EXPECT_EQ(JsonlClient::CodeOf(client_->ResponseWithoutId()), "too_long");
  EXPECT_FALSE(workspace_.Exists("a"));
}

TEST_F(ServeFiles, AWriteIsAStepThatUndoTakesBack) {
  MustCall(::chmod(workspace_.Path("keep.txt").c_str(), 0640), "chmod");
  const TreeSnapshot before = workspace_.Snapshot();
  const Json written = client_->Result("fs.write", R"({"path":"keep.txt","content":"new\n"})");
  EXPECT_EQ(written.GetInt("step_id").value(), 1);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "new\n");
  struct stat stat{};
  MustCall(::stat(workspace_.Path("keep.txt").c_str(), &stat), "stat");
  EXPECT_EQ(stat.st_mode & 07777, 0640u);
  client_->Result("fs.write",
                  R"({"path":"a/b/c","content":"/wA=","encoding":"base64","create_parents":true})");
  EXPECT_EQ(workspace_.ReadFile("a/b/c"), std::string("\xff\0", 2));
  const Json history = client_->Result("undo.history");
  EXPECT_EQ((*history.Find("steps")->AsArray())[0].GetString("type").value(), "api");
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeFiles, AWriteKeepsHardLinksTogetherAndFollowsNoSymlink) {
  MustCall(::link(workspace_.Path("keep.txt").c_str(), workspace_.Path("other").c_str()), "link");
  MustCall(::symlink("keep.txt", workspace_.Path("pointer").c_str()), "link");
  const TreeSnapshot before = workspace_.Snapshot();
  client_->Result("fs.write", R"({"path":"keep.txt","content":"new\n"})");
  EXPECT_EQ(workspace_.ReadFile("other"), "new\n");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"pointer","content":""})"), "invalid_argument");
  client_->Result("fs.write", R"({"path":"empty","content":""})");
  EXPECT_EQ(workspace_.ReadFile("empty"), "");
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeFiles, AWriteThatFailsLeavesNothing) {
  const TreeSnapshot before = workspace_.Snapshot();
  MustCall(::symlink("/etc", workspace_.Path("../out").c_str()), "link");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"a/b","content":""})"), "not_found");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"src","content":""})"), "invalid_argument");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"../x","content":""})"), "outside_root");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"x","content":"?","encoding":"base64"})"),
            "invalid_argument");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 0);
}

}  // namespace
}  // namespace sandglass::test
