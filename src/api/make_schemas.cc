// Writes schemas/ and the generated part of docs/api.md from the table of operations: make_api_schemas ROOT. A test fails when they are
// stale, and says to run this.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "api/describe.h"

namespace {

namespace fs = std::filesystem;

bool Write(const fs::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  return static_cast<bool>(file.flush());
}

bool WriteSchemas(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  for (const auto& [name, content] : sandglass::api::SchemaFiles()) {
    if (!Write(folder / name, content)) return false;
  }
  return true;
}

bool WriteDocument(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string now((std::istreambuf_iterator<char>(file)), {});
  const auto fresh = sandglass::api::WithDocumentedTables(now);
  return fresh && Write(path, *fresh);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s ROOT\n", argv[0]);
    return 2;
  }
  const fs::path root = argv[1];
  if (WriteSchemas(root / "schemas") && WriteDocument(root / "docs" / "api.md")) return 0;
  std::fprintf(stderr, "could not write everything below %s\n", argv[1]);
  return 1;
}
