#include "tests/kills/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/process_tree.h"
#include "tests/kills/batch.h"
#include "tests/support/fixtures.h"

namespace sandglass::test {
namespace {

constexpr size_t kEnoughMismatches = 3;
constexpr auto kPatience = std::chrono::seconds(20);
constexpr char kTakenBack[] = " has been taken back";

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

int RunShell(const std::string& command) { return ::system(command.c_str()); }

std::string ShellWord(const std::string& path) { return "'" + path + "'"; }

int Effective(const std::string& shown) {
  return static_cast<int>(std::ranges::count(shown, kEffective));
}

}  // namespace

CampaignSpec CampaignSpec::FromEnvironment() {
  const char* scale = std::getenv("SANDGLASS_SCALE");
  CampaignSpec spec{
      .rounds = 4, .kills_per_round = 3, .keeper_every = 4, .mutations = 60, .inside_percent = 50};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (scale != nullptr && std::string_view(scale) == "full") {
    spec = {.rounds = 50,
            .kills_per_round = 4,
            .keeper_every = 2,
            .mutations = 260,
            .inside_percent = 75};
    // The sample is the same for every change; the full run looks further.
    spec.seed =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  }
  spec.seed = Number("SANDGLASS_KILLS_SEED", spec.seed);
  spec.rounds =
      static_cast<int>(Number("SANDGLASS_KILLS_ROUNDS", static_cast<uint64_t>(spec.rounds)));
  return spec;
}

int CampaignCounts::KillsBut(Victim left_out) const {
  int sum = 0;
  for (const auto& [victim, count] : kills) sum += victim == left_out ? 0 : count;
  return sum;
}

std::string CampaignCounts::Text() const {
  std::string text = fmt::format("{} steps, {} mutations (and {} in killed steps), kills:", steps,
                                 mutations, mutations_killed);
  for (const auto& [victim, count] : kills) text += fmt::format(" {} {},", NameOf(victim), count);
  return text + fmt::format(
                    " inside open steps {} (keepers not counted), after the close {}, {} started "
                    "again at once, {} trees "
                    "differed before the restart, {} redone "
                    "and undone again, mismatches {}",
                    inside, closed, at_once, differed, redone, mismatches.size());
}

// --- The project.

void Campaign::SetUp() {
  ShellFixture::SetUp();
  if (IsSkipped()) return;
  AdoptOrphans();
  scripts_ = workspace_.root() + "/scripts";
  MustCall(::mkdir(scripts_.c_str(), 0755), scripts_);
  PlantProject();
}

void Campaign::TearDown() {
  if (shell_ > 0) (void)Kill(CastOf(shell_), Victim::kAll);
  (void)SurvivorsAfter(kPatience);
}

void Campaign::PlantProject() const {
  workspace_.MakeDir("weird");
  workspace_.MakeDir("deep");
  DeepTree(workspace_.Path("deep"));
  WeirdTree(workspace_.Path("weird"), LockedFiles::kOmit);
  Plant(
      // What nobody can read nobody can compare.
      "[ $(id -u) = 0 ] || chmod u+r weird/closed/mode_000; [ $(id -u) = 0 ] || chmod u+rx "
      "weird/closed/dir_0000; "
      "git init -q -b main repo && cd repo && git config gc.auto 0 && git config user.name n && "
      "git config user.email e && "
      "for i in 1 2 3 4 5; do seq $i 500 >file$i; git add -A; git commit -qm $i; done && cd .. && "
      "sqlite3 base.db 'create table t (a, b); insert into t select value, value from "
      "generate_series(1, 500)'");
}

void Campaign::Plant(const std::string& script) const {
  ASSERT_EQ(RunShell(fmt::format("cd {} && ( {} )", ShellWord(workspace_.project()), script)), 0);
}

Campaign::Sight Campaign::Look(const std::string& name) const {
  Sight sight{.tree = workspace_.Snapshot(),
              .json = fmt::format("{}/{}.json", workspace_.root(), name)};
  const int status =
      RunShell(fmt::format("python3 {}/compare_tree.py snapshot {} >{}", SANDGLASS_TEST_SUPPORT_DIR,
                           ShellWord(workspace_.project()), ShellWord(sight.json)));
  EXPECT_EQ(status, 0) << "compare_tree.py";
  return sight;
}

std::vector<std::string> Campaign::Differences(const Sight& expected) const {
  std::vector<std::string> differences = Diff(expected.tree, workspace_.Snapshot());
  const std::string second = workspace_.root() + "/differences";
  const int status = RunShell(fmt::format("python3 {}/compare_tree.py diff {} {} >{}",
                                          SANDGLASS_TEST_SUPPORT_DIR, ShellWord(expected.json),
                                          ShellWord(workspace_.project()), ShellWord(second)));
  if (status != 0 || !differences.empty())
    differences.push_back(fmt::format("compare_tree.py answered {}:\n{}", WEXITSTATUS(status),
                                      Must(ReadFileAt(AT_FDCWD, second.c_str(), 1 << 20))));
  return differences;
}

// --- Lines of the shell.

Campaign::Line Campaign::NextLine() {
  Line line{.number = next_line_++};
  line.script = fmt::format("{}/{}.sh", scripts_, line.number);
  line.command = ". " + ShellWord(line.script);
  const std::string text = BatchScript({line.number, spec_.mutations}, before_.tree, random_);
  const Fd file(MustCall(
      ::open(line.script.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), line.script));
  Must(WriteFully(file.get(), AsBytes(text)));
  return line;
}

void Campaign::LetOneEnd() {
  const Line line = NextLine();
  const auto begin = std::chrono::steady_clock::now();
  const std::string shown = Type(line.command);
  durations_.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin));
  ++counts_.steps;
  counts_.mutations += Effective(shown);
  record_ += fmt::format("line {}: left to end, {} us\n", line.number, durations_.back().count());
  const Sight before = std::exchange(before_, Look(fmt::format("after-{}", line.number)));
  if (counts_.steps % 5 == 1) {
    const std::string undone = Type("undo");
    ExpectTree(before, line, "after undo, which said: " + undone);
    const std::string redone = Type("redo");
    ExpectTree(before_, line, "after redo, which said: " + redone);
  }
  std::remove(before.json.c_str());
}

// Anywhere in the line, and sometimes just after its end. The shortest of the last lines is the measure: a machine that was busy then
// and is not now must not make most kills come too late.
std::chrono::microseconds Campaign::RandomMoment() {
  const auto recent = std::min<std::ptrdiff_t>(std::ssize(durations_), 3);
  const auto shortest =
      static_cast<size_t>(std::min_element(durations_.end() - recent, durations_.end())->count());
  return std::chrono::microseconds(Below(random_, shortest + shortest / 20));
}

Victim Campaign::RandomVictim() {
  constexpr Victim kChoices[] = {Victim::kSession, Victim::kSession, Victim::kSession,
                                 Victim::kShim,    Victim::kShim,    Victim::kBridge,
                                 Victim::kBridge,  Victim::kAll,     Victim::kAll};
  return kChoices[Below(random_, std::size(kChoices))];
}

// False: somebody lived on.
bool Campaign::KillDuring(const Line& line, Blow& blow) {
  const auto moment = RandomMoment();
  blow.cast = CastOf(shell_);  // now, for it takes a while
  Send(line.command + "\r");
  std::string shown = ReadFor(moment);
  const bool killed = Kill(blow.cast, blow.victim);
  shown += ReadUntil("\x01");
  ++counts_.kills[blow.victim];
  counts_.mutations_killed += Effective(shown);
  record_ += fmt::format("line {}: {} killed after {} us\n", line.number, NameOf(blow.victim),
                         moment.count());
  std::erase(shown, kEffective);
  record_ += shown;
  if (!killed) Mismatch(line, "nobody to kill", {});
  return killed;
}

// What the dead left.
TreeSnapshot Campaign::AwaitTheEnd(const Line& line) {
  const std::vector<pid_t> survivors = SurvivorsAfter(kPatience);
  if (!survivors.empty()) Mismatch(line, fmt::format("lived on: {}", survivors), {});
  (void)RunShell(fmt::format("rm -rf {0}/wal && cp -a {1}/undo/*/wal {0}/wal",
                             ShellWord(workspace_.root()), ShellWord(state_)));
  return workspace_.Snapshot();
}

void Campaign::KillOnce(Victim victim) {
  const Line line = NextLine();
  Blow blow{.victim = victim};
  if (!KillDuring(line, blow)) return;
  // A session that lives has the store until it has ended.
  const bool session_died = blow.victim == Victim::kSession || blow.victim == Victim::kAll;
  const bool at_once = session_died && OneIn(random_, 3);
  if (!at_once) blow.dead = AwaitTheEnd(line);
  const std::string shown = StartShell({"--no-safeguards", "--ro", scripts_});
  record_ += "started again: " + shown + "\n";
  counts_.at_once += at_once ? 1 : 0;
  for (const pid_t pid : blow.cast.shims) {
    if (StartTimeOf(pid))
      Mismatch(line, "the next start did not wait for the end of the world", {});
  }
  if (spec_.tamper == CampaignSpec::Tamper::kOneTime) TamperWithTree();
  Judge(line, blow, shown);
}

// --- Verdicts.

void Campaign::Judge(const Line& line, const Blow& blow, const std::string& shown) {
  const TreeSnapshot now = workspace_.Snapshot();
  const bool changed = !Diff(before_.tree, blow.dead.value_or(now)).empty();
  counts_.differed += changed ? 1 : 0;
  if (shown.find(kTakenBack) != std::string::npos) {
    counts_.inside += blow.victim != Victim::kKeeper ? 1 : 0;
    return JudgeRecovered(line, blow);
  }
  if (changed) return JudgeClosed(line, blow);
  ExpectTree(before_, line, "killed before the first change");
}

void Campaign::JudgeRecovered(const Line& line, const Blow& blow) {
  ExpectTree(before_, line, "taken back by the next start");
  if (!blow.dead || !OneIn(random_, 3) || spec_.tamper != CampaignSpec::Tamper::kNo) return;
  // Nothing is lost: what was taken back can be had again.
  ++counts_.redone;
  record_ += Type("redo");
  ExpectTree(*blow.dead, line, "after redo of what was taken back");
  record_ += Type("undo");
  ExpectTree(before_, line, "after undo of that");
}

void Campaign::JudgeClosed(const Line& line, const Blow& blow) {
  ++counts_.closed;
  const bool whole = workspace_.Exists(kDoneFile) &&
                     workspace_.ReadFile(kDoneFile) == fmt::format("{}\n", line.number);
  const bool of_keeper = blow.victim == Victim::kKeeper;
  if (!whole && !of_keeper)
    Mismatch(line, "interrupted, and not taken back", Diff(before_.tree, workspace_.Snapshot()));
  if (blow.dead) ExpectTree(*blow.dead, line, "the step had closed");
  // Without its keeper a command may write a moment longer than its step.
  const int at_most = of_keeper ? 3 : 1;
  for (int i = 0; i < at_most && !Differences(before_).empty(); ++i) record_ += Type("undo");
  ExpectTree(before_, line, "after undo of the closed step");
}

void Campaign::ExpectTree(const Sight& expected, const Line& line, const std::string& when) {
  const std::vector<std::string> differences = Differences(expected);
  if (!differences.empty()) Mismatch(line, when, differences);
}

void Campaign::ExpectTree(const TreeSnapshot& expected, const Line& line, const std::string& when) {
  const std::vector<std::string> differences = Diff(expected, workspace_.Snapshot());
  if (!differences.empty()) Mismatch(line, when, differences);
}

// Keeps everything: the project and the store as they are now, the tree that was expected, the journal as the dead left it, the
// scripts, and what happened until now.
void Campaign::Mismatch(const Line& line, const std::string& what,
                        const std::vector<std::string>& details) {
  std::string kept = "/tmp/sandglass-kills-XXXXXX";
  const bool made = spec_.tamper == CampaignSpec::Tamper::kNo && ::mkdtemp(kept.data()) != nullptr;
  std::string text =
      fmt::format("seed {} line {}: {}{}\n  {}\n", spec_.seed, line.number, what,
                  made ? fmt::format(" (kept in {})", kept) : "", fmt::join(details, "\n  "));
  counts_.mismatches.push_back(text);
  record_ += "MISMATCH " + text;
  if (!made) return;
  const Fd file(MustCall(::open((workspace_.root() + "/record").c_str(),
                                O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
                         "record"));
  Must(WriteFully(file.get(), AsBytes(record_)));
  (void)RunShell(fmt::format("cp -a {}/. {} 2>/dev/null", ShellWord(workspace_.root()), kept));
  before_ = Look(fmt::format("after-{}-mismatch", line.number));
}

void Campaign::TamperWithTree() const {
  const std::string path = workspace_.Path("base.db");
  struct stat now{};
  MustCall(::stat(path.c_str(), &now), path);
  timespec times[2] = {now.st_atim, now.st_mtim};
  times[1].tv_nsec = (times[1].tv_nsec + 1) % 1'000'000'000;
  MustCall(::utimensat(AT_FDCWD, path.c_str(), times, 0), path);
}

CampaignCounts Campaign::Conduct(const CampaignSpec& spec) {
  spec_ = spec;
  random_.seed(spec.seed);
  StartShell({"--no-safeguards", "--ro", scripts_});
  before_ = Look("at-first");
  for (int round = 0; round < spec_.rounds; ++round) {
    LetOneEnd();
    const bool keeper_too = spec_.keeper_every > 0 && round % spec_.keeper_every == 1;
    for (int i = 0; i < spec_.kills_per_round + (keeper_too ? 1 : 0); ++i) {
      KillOnce(i < spec_.kills_per_round ? RandomVictim() : Victim::kKeeper);
      const bool stop =
          HasFatalFailure() || shell_ <= 0 || counts_.mismatches.size() >= kEnoughMismatches;
      if (stop && spec_.tamper == CampaignSpec::Tamper::kNo) return counts_;
    }
  }
  return counts_;
}

}  // namespace sandglass::test
