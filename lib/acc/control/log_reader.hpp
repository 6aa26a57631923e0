// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/control/control_client.hpp"
#include "acc/control/job_view.hpp"

namespace acc::launcher {

/// Reads what the ranks of a running job write: from their log files, and from the agent where it keeps the
/// end of a stream.
class LogReader {
 public:
  /// Bytes of one rank, in its order.
  using Take = std::function<void(int rank, StreamName stream, std::string_view bytes)>;
  /// A sentence about what is missing.
  using Note = std::function<void(const std::string&)>;

  /// `ranks` empty: all. Throws Error{usage} for a rank that the job does not have here.
  LogReader(RunningJob& job, std::vector<int> ranks, Take take, Note note);

  /// What is there now.
  void read();

  /// That, and what comes until the job ends, over restarts. The job's exit code, if it was told.
  std::optional<int> follow();

 private:
  struct Log {
    int rank = 0;
    StreamName stream = StreamName::out;
    Descriptor file = {};
  };

  bool wants(int rank) const;
  void open_rank(const RankView& rank);
  void open_stream(int rank, StreamName stream, const StreamPlace& place);
  void read_files();
  void on_piece(const nlohmann::json& message);

  RunningJob& job_;
  std::vector<int> ranks_;
  Take take_;
  Note note_;
  std::set<std::string> noted_ = {};
  Descriptor changes_;
  std::map<std::filesystem::path, Log> logs_ = {};
};

}  // namespace acc::launcher
