#include "api/describe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace sandglass::api {
namespace {

namespace fs = std::filesystem;

constexpr char kHint[] = "run `build/dev/bin/make_api_schemas .` in the root of the repository";

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(ApiDescription, SchemaFilesAreThoseOfTheTable) {
  const fs::path folder = fs::path(SANDGLASS_ROOT) / "schemas";
  std::set<std::string> names;
  for (const auto& [name, content] : SchemaFiles()) {
    names.insert(name);
    EXPECT_EQ(ContentOf(folder / name), content) << name << ": " << kHint;
    EXPECT_TRUE(ParseJson(content).ok()) << name;
  }
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_TRUE(names.contains(entry.path().filename())) << entry.path() << ": " << kHint;
}

TEST(ApiDescription, TheDocumentHasTheTables) {
  const std::string document = ContentOf(fs::path(SANDGLASS_ROOT) / "docs" / "api.md");
  EXPECT_EQ(WithDocumentedTables(document), document) << kHint;
  EXPECT_EQ(WithDocumentedTables("no place"), std::nullopt);
}

TEST(ApiDescription, SaysWhatDoesNotWorkYet) {
  const Json description = Description();
  for (const Json& operation : *description.Find("operations")->AsArray()) {
    const bool works = *operation.Find("supported")->AsBool();
    EXPECT_EQ(operation.Find("missing") == nullptr, works) << WriteJson(*operation.Find("name"));
  }
}

}  // namespace
}  // namespace sandglass::api
