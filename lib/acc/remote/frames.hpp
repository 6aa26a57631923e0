// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// What the client (`acc launch --hosts`) and the agent of a host (`acc agent`) send each other over the
/// standard streams of ssh.
enum class FrameKind : char {
  // From the client.
  spec = 'S',    ///< JobSpec: what is to run
  start = 'G',   ///< StartOrder: all hosts are ready
  signal = 'K',  ///< the number of a signal for the job
  pause = 'P',   ///< the client is stopped (Ctrl-Z) and will be silent
  look = 'Q',    ///< somebody looks at the job there: `reports` follows
  // From the agent.
  ready = 'R',    ///< HostReady
  refused = 'E',  ///< Refusal: the job cannot start here; the agent ends
  out = 'o',      ///< standard output of the workers
  err = 'e',      ///< standard error of the workers
  log = 'l',      ///< lines of acc itself
  reports = 'N',  ///< the ranks of all nodes: to_json(NodeReports); empty: they could not be read
  exit = 'X',     ///< the exit code of acc there; the last frame
  // Both send it, so each notices when the other is silent.
  heartbeat = 'H',
};

struct Frame {
  FrameKind kind = FrameKind::heartbeat;
  std::string payload = {};

  bool operator==(const Frame&) const = default;
};

/// The frame as bytes: the kind, the size of the payload in four bytes, the lowest first, and the payload.
std::string encode(FrameKind kind, std::string_view payload = {});

/// The first bytes from an agent. What a login shell prints before them is skipped.
std::string greeting();

/// Cuts a stream into frames.
class FrameReader {
 public:
  /// `greeted`: the stream begins with a greeting.
  explicit FrameReader(bool greeted) : waits_for_greeting_(greeted) {}

  /// Returns the frames that `chunk` completes. Throws Error{system} if the bytes are no frames, and if there
  /// is no greeting in the first 64 KiB.
  std::vector<Frame> feed(std::string_view chunk);

  /// What came before the greeting.
  const std::string& preamble() const { return preamble_; }

 private:
  bool skip_to_greeting();

  bool waits_for_greeting_;
  std::string buffer_ = {};
  std::string preamble_ = {};
};

}  // namespace acc::launcher
