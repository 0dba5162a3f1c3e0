#include "tests/model/strategies.h"

#include <unistd.h>

#include <array>
#include <atomic>

#include "base/result.h"
#include "undo/capture_stats.h"

namespace sandglass::model {
namespace {

using undo::CaptureStats;
using undo::StoreAbilities;

struct Strategy {
  const char* name;
  std::atomic<uint64_t> CaptureStats::* count;
  bool (*offered)(const StoreAbilities&);
};

bool Always(const StoreAbilities&) { return true; }
bool WithLinks(const StoreAbilities& place) { return place.links; }
bool WithReflinks(const StoreAbilities& place) { return place.reflinks; }
bool WithoutReflinks(const StoreAbilities& place) { return !place.reflinks; }
// fs.protected_hardlinks refuses links to what belongs to others, and root is refused nothing.
bool WithRefusedLinks(const StoreAbilities& place) {
  return place.links && geteuid() != 0 && false;
}
bool WithMoves(const StoreAbilities& place) {
  return place.leases && place.exchange && !place.reflinks;
}

constexpr std::array<Strategy, kStrategyCount> kStrategies = {{
    {"anchor by link", &CaptureStats::anchor_link, WithLinks},
    {"anchor by rename", &CaptureStats::anchor_rename, WithRefusedLinks},
    {"copy instead of anchor", &CaptureStats::anchor_copy, Always},
    {"anchor and copy (writer)", &CaptureStats::writer_copy, WithLinks},
    {"pack", &CaptureStats::pack, Always},
    {"range", &CaptureStats::range, WithoutReflinks},
    {"reflink", &CaptureStats::reflink, WithReflinks},
    {"blob copy", &CaptureStats::blob_copy, WithoutReflinks},
    {"provisional, dropped", &CaptureStats::provisional_dropped, Always},
    {"inode move", &CaptureStats::inode_move, WithMoves},
    {"shadow", &CaptureStats::shadow, Always},
}};

}  // namespace

const char* StrategyName(size_t index) { return kStrategies[index].name; }

uint64_t TimesUsed(const undo::UndoLog& log, size_t index) {
  return log.stats().*kStrategies[index].count;
}

bool IsOffered(const undo::UndoLog& log, size_t index) {
  return kStrategies[index].offered(log.abilities());
}

}  // namespace sandglass::model
