// VictimWorld: a local world with the supervised bridge, as the product builds it, or with one of its protections taken away; and the
// host around it, with everything that a victim may be after. A call that fails ends the test program: see must.h. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/supervise/supervisor.h"
#include "tests/support/temp_workspace.h"
#include "tests/world/world_client.h"
#include "undo/undo_log.h"

namespace sandglass::test {

enum class Removed : uint8_t {
  kNothing,
  kFilter,           // calls are neither refused nor supervised
  kRuleForChmod,     // chmod() alone is not supervised
  kCapabilities,     // and the filter: root in the world keeps all of them
  kReadOnlyProject,  // the project is mounted as it is
  kReadOnlyOutside,  // a folder of the host is
  kWriteLock,        // opens for writing are limited by read-only mounts alone
  kWorld,            // the victim runs on the host
};

// Of whom the victim gets the number.
enum class Process : uint8_t { kNone, kShim, kHost };

class VictimWorld {
 public:
  explicit VictimWorld(Removed removed);
  ~VictimWorld();

  // `target` may begin with PROJECT, OUTSIDE, STORE, LAYER or HOME. Runs as a step that is then closed.
  Ran Run(std::string_view victim, std::string_view target, Process process);
  // With how many tries; a step of its own, which is then rolled back. False: undo itself saw that something was changed unseen.
  bool RunAndRollBack(std::string_view victim, std::string_view target, int tries);
  // The victim opens files in one step and uses them in the next one, which is rolled back.
  // They are PROJECT/files/0 and so on, and hold "old".
  bool RunOverTwoSteps(std::string_view victim, int files);

  const TempWorkspace& workspace() const { return workspace_; }

 private:
  void FurnishHost();
  void FurnishProject();
  void Listen(const std::string& path, int type);
  void StartWorld();
  world::LocalWorldSpec Spec() const;
  std::string Resolve(std::string_view target) const;
  control::Exec Exec(std::string_view victim, std::string_view target, int number) const;
  Ran RunOnHost(const control::Exec& exec);
  bool RollBack();

  const Removed removed_;
  TempWorkspace workspace_;
  // Store and layer lie in a folder that the world can see: it is for the world to hide them.
  std::string outside_, store_, layer_, home_;
  std::vector<Fd> host_descriptors_;
  std::unique_ptr<undo::UndoLog> log_;
  std::unique_ptr<bridge::Supervisor> supervisor_;
  std::unique_ptr<TestWorld> world_;
  std::vector<std::unique_ptr<bridge::SupervisedCommand>> commands_;
};

// The name of an abstract socket on which the host listens.
std::string HostsAbstractName();

}  // namespace sandglass::test
