#include "session/output_pipes.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandglass::session {
namespace {

constexpr int kPipeBytes = 1 << 20;  // an ordinary user may have that much by default

size_t BytesIn(const Fd& pipe) {
  int count = 0;
  return pipe && ::ioctl(pipe.get(), FIONREAD, &count) == 0 ? static_cast<size_t>(count) : 0;
}

}  // namespace

void LeftOutput::AddTo(std::vector<pollfd>& fds) const {
  for (const Fd& pipe : pipes_) fds.push_back({pipe.get(), POLLIN, 0});
}

void LeftOutput::Drop() {
  std::erase_if(pipes_, [](const Fd& pipe) {
    char dropped[size_t{64} << 10];
    const ssize_t size = ::read(pipe.get(), dropped, sizeof(dropped));
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
  });
}

Result<OutputPipes> OutputPipes::Make() {
  OutputPipes made;
  for (Pipe& pipe : made.pipes_) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, "pipe");
    pipe.ours = Fd(ends[0]);
    pipe.theirs = Fd(ends[1]);
    if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) return Error::FromErrno(errno, "pipe");
    (void)::fcntl(pipe.ours.get(), F_SETPIPE_SZ, kPipeBytes);  // else it is slower
  }
  return made;
}

void OutputPipes::CloseGiven() {
  for (Pipe& pipe : pipes_) pipe.theirs.Reset();
}

std::string_view OutputPipes::Read(control::Stream stream, std::span<char> buffer) {
  Pipe& pipe = At(stream);
  const size_t wanted = std::min(buffer.size(), pipe.left.value_or(buffer.size()));
  if (!pipe.ours || wanted == 0) return {};
  const ssize_t size = ::read(pipe.ours.get(), buffer.data(), wanted);
  if (size > 0) {
    if (pipe.left) *pipe.left -= static_cast<size_t>(size);
    return {buffer.data(), static_cast<size_t>(size)};
  }
  // Of what it held at the end, another one may have read some: any process can open its own descriptors again.
  if (pipe.left) pipe.left = 0;
  if (size == 0 || (errno != EAGAIN && errno != EINTR)) pipe.ours.Reset();
  return {};
}

void OutputPipes::NoteEnd() {
  CloseGiven();  // if it never was released
  for (Pipe& pipe : pipes_) pipe.left = BytesIn(pipe.ours);
}

bool OutputPipes::drained() const {
  return std::ranges::all_of(pipes_, [](const Pipe& pipe) { return !pipe.ours || pipe.left == 0; });
}

void OutputPipes::LeaveTo(LeftOutput& left) {
  for (Pipe& pipe : pipes_) {
    if (pipe.ours) left.Add(std::move(pipe.ours));
  }
}

}  // namespace sandglass::session
