// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/file_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/state_messages.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {

namespace fs = std::filesystem;

ReceivedFile::ReceivedFile(const fs::path& file) : path_(file) {
  std::error_code told_by_finish;
  fs::create_directories(file.parent_path(), told_by_finish);
  stream_.open(file, std::ios::binary);
}

void ReceivedFile::write(std::string_view piece) {
  if (!path_.empty()) stream_.write(piece.data(), std::ssize(piece));
}

void ReceivedFile::finish() {
  if (path_.empty()) return;
  stream_.close();
  if (!stream_) throw_errno(path_, "cannot be written", errno);
}

void send_file(const fs::path& file, int from, const SavingProcesses& processes, ReceivedFile& received) {
  constexpr std::size_t kPiece = std::size_t{32} << 20U;
  std::optional<MappedFile> content;
  const auto failure = failure_of([&] {
    if (processes.index == from) content.emplace(file);
  });
  ProcessGroup* group = processes.group.get();
  const std::string size =
      broadcast_text(content ? std::to_string(content->size()) : "", from, group, failure);
  const NumberRange sizes{.max = std::numeric_limits<std::int64_t>::max()};
  const auto bytes = static_cast<std::size_t>(parse_sent_number(size, sizes, from));
  for (std::size_t begin = 0; begin < bytes; begin += kPiece) {
    const std::size_t length = std::min(kPiece, bytes - begin);
    const std::string_view own_piece =
        content ? std::string_view(content->data() + begin, length) : std::string_view();
    const std::string piece = broadcast_text(own_piece, from, group);
    if (piece.size() != length) refuse_message(from, "a file of the size that it named");
    received.write(piece);
  }
}

std::exception_ptr send_files(const std::vector<std::string>& names, const fs::path& folder, int from,
                              const SavingProcesses& processes,
                              const std::function<fs::path(const std::string& name)>& target_of) {
  std::exception_ptr failure;
  for (const std::string& name : names) {
    ReceivedFile received;
    const fs::path target = failure ? fs::path() : target_of(name);
    if (!target.empty()) received = ReceivedFile(target);
    send_file(folder / name, from, processes, received);
    const std::exception_ptr problem = failure_of([&] { received.finish(); });
    if (!failure) failure = problem;
  }
  return failure;
}

}  // namespace acc::detail
