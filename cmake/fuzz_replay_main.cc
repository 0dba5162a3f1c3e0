// Runs a fuzz target once on every file given (a directory stands for the files in it), so that a
// corpus is a regression test in every build, not only where libFuzzer is linked.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

void AddInputs(const fs::path& given, std::vector<fs::path>& inputs) {
  std::error_code error;
  if (!fs::is_directory(given, error)) {
    inputs.push_back(given);
    return;
  }
  for (const auto& entry : fs::directory_iterator(given, error)) {
    if (entry.is_regular_file(error)) inputs.push_back(entry.path());
  }
}

bool Replay(const fs::path& input) {
  std::ifstream file(input, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", input.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                std::istreambuf_iterator<char>()};
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> inputs;
  for (int i = 1; i < argc; ++i) {
    // libFuzzer's own flags are accepted and ignored: one command line serves both programs.
    if (argv[i][0] != '-') AddInputs(argv[i], inputs);
  }
  std::sort(inputs.begin(), inputs.end());
  bool all_read = true;
  for (const auto& input : inputs) all_read = Replay(input) && all_read;
  std::printf("replayed %zu inputs\n", inputs.size());
  return all_read ? 0 : 1;
}
