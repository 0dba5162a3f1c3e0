// crash_toy: the smallest thing that the crash harness can be tried on: one step that creates one file, with a log of two names.
// In `sound` the log is written before the operation and recovery undoes it. The other scenarios have one fault each, which the
// harness has to find.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/crash/marker_port.h"

namespace sandglass::crash {
namespace {

struct Toy {
  std::string project, store;
  MarkerPort port;

  std::string file() const { return project + "/new"; }
  std::string intent() const { return store + "/intent"; }
  std::string step() const { return store + "/step"; }
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

enum class Care : uint8_t { kResumes, kTakesWhatItGets };

bool WriteFile(const std::string& path, std::string_view text, Care care) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return false;
  while (!text.empty()) {
    const ssize_t written = write(fd.get(), text.data(), text.size());
    if (written < 0) return false;
    if (care == Care::kTakesWhatItGets) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void SetMtime(const std::string& path, int64_t ns) {
  const timespec times[2] = {{0, UTIME_OMIT}, {ns / 1'000'000'000, ns % 1'000'000'000}};
  utimensat(AT_FDCWD, path.c_str(), times, 0);
}

int64_t MtimeOf(const std::string& path) {
  struct stat st = {};
  stat(path.c_str(), &st);
  return st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
}

// The intent holds what the step changes besides the file: the time of its folder.
bool WriteIntent(const Toy& toy, int64_t mtime) {
  const std::string draft = toy.store + "/draft";
  unlink(draft.c_str());
  return WriteFile(draft, std::to_string(mtime), Care::kResumes) &&
         rename(draft.c_str(), toy.intent().c_str()) == 0;
}

void TakeBack(const Toy& toy, const std::string& log) {
  std::ifstream in(log);
  int64_t mtime = 0;
  in >> mtime;
  unlink(toy.file().c_str());
  SetMtime(toy.project, mtime);
}

bool Recover(const Toy& toy) {
  if (!Exists(toy.intent())) return false;
  TakeBack(toy, toy.intent());
  unlink(toy.intent().c_str());
  return true;
}

const char* HistoryNow(const Toy& toy) { return Exists(toy.step()) ? "1" : ""; }

void SayState(const Toy& toy) { toy.port.Say(std::string("state ") + HistoryNow(toy)); }

bool DoStep(const Toy& toy, std::string_view scenario) {
  const int64_t mtime = MtimeOf(toy.project);
  const Care care = scenario == "careless" ? Care::kTakesWhatItGets : Care::kResumes;
  const bool late = scenario == "late";
  if (!late && !WriteIntent(toy, mtime)) return false;
  if (!WriteFile(toy.file(), "new content", care)) return false;
  if (late && !WriteIntent(toy, mtime)) return false;
  toy.port.Say("closing 1");
  return rename(toy.intent().c_str(), toy.step().c_str()) == 0;
}

int Run(const Toy& toy, std::string_view scenario) {
  if (scenario == "rude" && DoStep(toy, "sound")) return 0;
  if (scenario == "rude") abort();
  if (!DoStep(toy, scenario)) {
    toy.port.Say(std::string("refused ") + std::to_string(errno));
    Recover(toy);
  }
  SayState(toy);
  return 0;
}

int Setup(const Toy& toy) {
  if (mkdir(toy.store.c_str(), 0755) != 0) return 1;
  if (!WriteFile(toy.project + "/old", "old content", Care::kResumes)) return 1;
  SetMtime(toy.project, 1'600'000'000'123'456'789);
  SayState(toy);
  return 0;
}

int Reopen(const Toy& toy) {
  const bool recovered = Recover(toy);
  toy.port.Say("opened");
  fmt::print("{{\"history\":[{}],\"recovered\":{},\"second_open_clean\":true}}\n", HistoryNow(toy),
             recovered);
  return 0;
}

int Verify(const Toy& toy) {
  const bool recovered = Recover(toy);
  toy.port.Say("opened");
  const std::string history = HistoryNow(toy);
  if (!history.empty()) {
    TakeBack(toy, toy.step());
    toy.port.Say("unwound");
  }
  fmt::print("{{\"history\":[{}],\"recovered\":{}}}\n", history, recovered);
  return 0;
}

int List() {
  constexpr const char* kRow =
      R"({{"name":"{}","about":"","evicts":false,"after_crash_of":"{}","crash_percent":60,"pause_ms":1}})"
      "\n";
  for (const char* name : {"sound", "late", "careless", "rude"})
    fmt::print(fmt::runtime(kRow), name, "");
  fmt::print(fmt::runtime(kRow), "recovery", "sound");
  return 0;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "list") return List();
  const bool named = mode == "run" || mode == "setup";
  const int first = named ? 3 : 2;
  if (argc < first + 2) return 2;
  const Toy toy{argv[first], argv[first + 1], {}};
  if (mode == "setup") return Setup(toy);
  if (mode == "reopen") return Reopen(toy);
  if (mode == "verify") return Verify(toy);
  if (std::string_view(argv[argc - 2]) == "--traced") MarkerPort::BeginTrace();
  const std::string_view name = argv[2];
  if (name != "recovery") return Run(toy, name);
  Recover(toy);
  SayState(toy);
  return 0;
}

}  // namespace
}  // namespace sandglass::crash

// The leak checker of a sanitizer build cannot work in a traced process.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main(int argc, char** argv) { return sandglass::crash::Main(argc, argv); }
