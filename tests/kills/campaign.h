// Campaign: a fixture that lets real programs change an awkward project in one world, line after line of a shell, kills parts of
// Sandglass at random moments, starts it again and judges the tree. What it finds is counted, and kept for whoever examines it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/kills/known_tree.h"
#include "tests/session/shell_fixture.h"
#include "tests/session/victims.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {

struct CampaignSpec {
  uint64_t seed = 1;
  int rounds = 0;           // one line that is left to end, and then kills
  int kills_per_round = 0;  // of anybody but the keeper
  int keeper_every = 0;     // rounds; a keeper is killed in addition
  int mutations = 0;        // tried by each line
  int inside_percent = 0;   // of the kills must come in an open step that has changed something
  enum class Tamper { kNo, kOneTime } tamper = Tamper::kNo;  // with the tree, before it is judged

  // SANDGLASS_SCALE, SANDGLASS_KILLS_SEED and SANDGLASS_KILLS_ROUNDS.
  static CampaignSpec FromEnvironment();
};

struct CampaignCounts {
  int steps = 0;             // lines that were left to end
  int mutations = 0;         // programs that reported success, in those lines
  int mutations_killed = 0;  // and in the lines that were killed
  std::map<Victim, int> kills;
  int inside = 0;    // kills of anybody but the keeper in an open step that had changed something
  int differed = 0;  // trees that were not the one before the step when everybody was dead
  int closed = 0;    // kills that came after the step had closed
  int at_once = 0;   // starts while the world before might still be ending
  int redone = 0;    // interrupted steps that redo brought back, and undo took back again
  std::vector<std::string> mismatches;

  int KillsBut(Victim left_out) const;
  std::string Text() const;
};

class Campaign : public ShellFixture {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Ends early when there are too many mismatches.
  CampaignCounts Conduct(const CampaignSpec& spec);

 private:
  // A tree as both comparers saw it.
  struct Sight {
    TreeSnapshot tree;
    std::string json;  // a file
  };
  struct Line {
    int number = 0;
    std::string script;  // a file
    std::string command;
  };

  struct Blow {
    Victim victim;
    Cast cast;
    std::optional<TreeSnapshot> dead;  // nullopt: the next start did not wait for everybody's end
  };

  void PlantProject() const;
  void Plant(const std::string& script) const;
  Line NextLine();
  void LetOneEnd();
  void KillOnce(Victim victim);
  bool KillDuring(const Line& line, Blow& blow);
  TreeSnapshot AwaitTheEnd(const Line& line);
  void Judge(const Line& line, const Blow& blow, const std::string& shown);
  void JudgeRecovered(const Line& line, const Blow& blow);
  void JudgeClosed(const Line& line, const Blow& blow);
  std::chrono::microseconds RandomMoment();
  Victim RandomVictim();
  void TamperWithTree() const;

  Sight Look(const std::string& name) const;
  // Empty: the project is that tree, by both comparers.
  std::vector<std::string> Differences(const Sight& expected) const;
  void ExpectTree(const Sight& expected, const Line& line, const std::string& when);
  void ExpectTree(const TreeSnapshot& expected, const Line& line, const std::string& when);
  void Mismatch(const Line& line, const std::string& what, const std::vector<std::string>& details);

  CampaignSpec spec_;
  CampaignCounts counts_;
  Random random_;
  Sight before_;
  std::vector<std::chrono::microseconds> durations_;  // of lines that were left to end
  int next_line_ = 1;
  std::string scripts_, record_;  // the folder of scripts; what happened, line by line
};

}  // namespace sandglass::test
