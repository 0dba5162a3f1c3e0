// What the bridge holds between Begin and Commit.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "undo/interceptor.h"
#include "undo/log_core.h"

namespace sandglass::undo {

// What a ticket holds until it is committed. Members die in reverse order: objects (and their leases) first, the gate last.
struct TicketState {
  StepGate::Pass pass;
  KeyLocks::Hold hold;
  StepWriter* writer = nullptr;  // null: the operation is not recorded
  std::optional<OpSeq> seq;
  std::optional<OpenObject> object;
  std::optional<OpenObject> target;
  // A change of names, as HasHappened asks for it.
  struct Intent {
    IntentKind kind;
    int dir_fd;
    ObjectId dir;
    std::string name;
    ObjectId object;

    bool IsBirth() const { return kind == IntentKind::kCreate && object == kNoObject; }
  };
  std::optional<Intent> intent;
  // What to give up if the operation fails, and the name that lost its object meanwhile.
  Keep keep;
  ObjectId kept_object;
  int kept_dir = -1;
  std::string kept_name;
  std::optional<StepWriter::Replacement> replacement;
  std::optional<OpenObject> replaced_in;
  std::optional<ObjectId> lost_folder;  // goes with the operation
  bool performed = false;
  bool folder_rename = false;
  LogCore* log = nullptr;

  Status GiveBack();
  // Losing a name moves the ctime of an object that has others. Where an anchor keeps it the step finds it again when it closes; where
  // its content was copied instead, only this ticket can say how it looks now.
  void NoteLostName() const;
  std::optional<Outcome> Judge() const;
  SafeguardTracker::Claim claim;
};

// Of an operation that undo has nothing to do with.
Ticket UnrecordedTicket();

}  // namespace sandglass::undo
