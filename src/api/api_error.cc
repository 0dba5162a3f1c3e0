#include "api/api_error.h"

namespace sandglass::api {
namespace {

constexpr ApiCode kAll[] = {
    ApiCode::kParseError,
    ApiCode::kTooLong,
    ApiCode::kInvalidRequest,
    ApiCode::kInvalidArgument,
    ApiCode::kUnknownOperation,
    ApiCode::kUnsupportedProtocol,
    ApiCode::kUnsupported,
    ApiCode::kNotStarted,
    ApiCode::kAlreadyStarted,
    ApiCode::kCommandRunning,
    ApiCode::kNoCommand,
    ApiCode::kUndoUnavailable,
    ApiCode::kShuttingDown,
    ApiCode::kNotFound,
    ApiCode::kExists,
    ApiCode::kDenied,
    ApiCode::kConflict,
    ApiCode::kCorrupt,
    ApiCode::kBusy,
    ApiCode::kLocked,
    ApiCode::kNoSpace,
    ApiCode::kLimit,
    ApiCode::kFailed,
    ApiCode::kVersion,
    ApiCode::kUnprotected,
    ApiCode::kNotRestorable,
    ApiCode::kOutsideRoot,
    ApiCode::kCancelled,
    ApiCode::kForeign,
    ApiCode::kSessionLost,
};

struct CodeText {
  std::string_view name;
  std::string_view meaning;
};

CodeText TextOf(ApiCode code) {
  switch (code) {
    case ApiCode::kParseError:
      return {"parse_error",
              "the line is not one JSON text in UTF-8, nests too deeply, or has a key twice"};
    case ApiCode::kTooLong:
      return {"too_long", "the line is longer than the limit; the rest of it was skipped"};
    case ApiCode::kInvalidRequest:
      return {"invalid_request", "the message is no request; `data.field` names the member"};
    case ApiCode::kInvalidArgument:
      return {"invalid_argument", "the payload does not fit; `data.field` names the member"};
    case ApiCode::kUnknownOperation:
      return {"unknown_operation", "there is no operation of that name"};
    case ApiCode::kUnsupportedProtocol:
      return {"unsupported_protocol",
              "none of the client's protocol versions is spoken; `data.supported` lists ours"};
    case ApiCode::kUnsupported:
      return {"unsupported", "this version, place or kernel cannot do it"};
    case ApiCode::kNotStarted:
      return {"not_started", "there is no session; send `session.start` first"};
    case ApiCode::kAlreadyStarted:
      return {"already_started", "a session runs; stop it first"};
    case ApiCode::kCommandRunning:
      return {"command_running",
              "a command runs, and this must wait for its end; `data.step_id` is its step"};
    case ApiCode::kNoCommand:
      return {"no_command", "no command runs that this could be for"};
    case ApiCode::kUndoUnavailable:
      return {"undo_unavailable",
              "the undo log is of another version; send `undo.discard` to begin a new one"};
    case ApiCode::kShuttingDown:
      return {"shutting_down", "the program ends and takes no more requests"};
    case ApiCode::kNotFound:
      return {"not_found", "the named thing does not exist"};
    case ApiCode::kExists:
      return {"exists", "the named thing exists already"};
    case ApiCode::kDenied:
      return {"denied", "permissions or a policy say no"};
    case ApiCode::kConflict:
      return {"conflict",
              "somebody else changed something in between; nothing was touched; `data.conflicts` "
              "lists it"};
    case ApiCode::kCorrupt:
      return {"corrupt", "stored data fails its checksum or does not parse"};
    case ApiCode::kBusy:
      return {"busy", "it is in use now; `data.pids` are the processes in the way"};
    case ApiCode::kLocked:
      return {"locked", "another session has this project"};
    case ApiCode::kNoSpace:
      return {"no_space", "the disk is full or a quota reached"};
    case ApiCode::kLimit:
      return {"limit", "a limit was reached"};
    case ApiCode::kFailed:
      return {"failed", "the system failed in a way that no other code describes"};
    case ApiCode::kVersion:
      return {"version", "it was written by another format version"};
    case ApiCode::kUnprotected:
      return {"unprotected", "the step was not recorded in full and can be undone only with force"};
    case ApiCode::kNotRestorable:
      return {"not_restorable", "undo could not be exact here, so it was refused"};
    case ApiCode::kOutsideRoot:
      return {"outside_root", "the path leads out of the working directory"};
    case ApiCode::kCancelled:
      return {"cancelled", "it was ended before it was done"};
    case ApiCode::kForeign:
      return {"foreign", "the undo store or the place belongs to another project"};
    case ApiCode::kSessionLost:
      return {"session_lost", "the world or the bridge of the session died; start it again"};
  }
  return {};
}

ApiCode FromCode(Code code) {
  switch (code) {
    case Code::kInvalid:
      return ApiCode::kInvalidArgument;
    case Code::kNotFound:
      return ApiCode::kNotFound;
    case Code::kExists:
      return ApiCode::kExists;
    case Code::kDenied:
      return ApiCode::kDenied;
    case Code::kConflict:
      return ApiCode::kConflict;
    case Code::kCorrupt:
      return ApiCode::kCorrupt;
    case Code::kBusy:
      return ApiCode::kBusy;
    case Code::kLocked:
      return ApiCode::kLocked;
    case Code::kUnsupported:
      return ApiCode::kUnsupported;
    case Code::kNoSpace:
      return ApiCode::kNoSpace;
    case Code::kLimit:
      return ApiCode::kLimit;
    case Code::kIo:
      return ApiCode::kFailed;
    case Code::kVersion:
      return ApiCode::kVersion;
    case Code::kUnprotected:
      return ApiCode::kUnprotected;
    case Code::kNotRestorable:
    case Code::kFrozen:
      return ApiCode::kNotRestorable;
    case Code::kOutsideRoot:
      return ApiCode::kOutsideRoot;
    case Code::kCancelled:
      return ApiCode::kCancelled;
    case Code::kForeign:
      return ApiCode::kForeign;
  }
  return ApiCode::kFailed;
}

}  // namespace

std::string_view NameOf(ApiCode code) { return TextOf(code).name; }
std::string_view MeaningOf(ApiCode code) { return TextOf(code).meaning; }
std::span<const ApiCode> AllApiCodes() { return kAll; }

// -32768 to -32000 are reserved by JSON-RPC, and of these -32099 to -32000 are for servers.
int JsonRpcNumber(ApiCode code) {
  switch (code) {
    case ApiCode::kParseError:
      return -32700;
    case ApiCode::kTooLong:
    case ApiCode::kInvalidRequest:
    case ApiCode::kUnsupportedProtocol:
      return -32600;
    case ApiCode::kUnknownOperation:
      return -32601;
    case ApiCode::kInvalidArgument:
      return -32602;
    case ApiCode::kFailed:
    case ApiCode::kCorrupt:
      return -32603;
    case ApiCode::kUnsupported:
      return -32000;
    case ApiCode::kNotStarted:
      return -32001;
    case ApiCode::kAlreadyStarted:
      return -32002;
    case ApiCode::kCommandRunning:
      return -32003;
    case ApiCode::kNoCommand:
      return -32004;
    case ApiCode::kUndoUnavailable:
      return -32005;
    case ApiCode::kShuttingDown:
      return -32006;
    case ApiCode::kSessionLost:
      return -32007;
    case ApiCode::kNotFound:
      return -32010;
    case ApiCode::kExists:
      return -32011;
    case ApiCode::kDenied:
      return -32012;
    case ApiCode::kConflict:
      return -32013;
    case ApiCode::kBusy:
      return -32014;
    case ApiCode::kLocked:
      return -32015;
    case ApiCode::kNoSpace:
      return -32016;
    case ApiCode::kLimit:
      return -32017;
    case ApiCode::kVersion:
      return -32018;
    case ApiCode::kUnprotected:
      return -32019;
    case ApiCode::kNotRestorable:
      return -32020;
    case ApiCode::kOutsideRoot:
      return -32021;
    case ApiCode::kCancelled:
      return -32022;
    case ApiCode::kForeign:
      return -32023;
  }
  return -32603;
}

ApiError FromError(const Error& error) { return {FromCode(error.code()), error.message()}; }

Json ToJson(const ApiError& error) {
  return Json::Object(
      {{"code", NameOf(error.code)}, {"message", error.message}, {"data", error.data}});
}

}  // namespace sandglass::api
