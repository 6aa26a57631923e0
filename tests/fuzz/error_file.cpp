// SPDX-License-Identifier: Apache-2.0
// The file in which a worker says why it failed, whatever wrote it: it is read, is not longer in a report
// than its limit, and the exit code can be added to it, also where it is kept for whoever started acc.
#include "acc/launch/error_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "acc/launch/launch_report.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::ErrorFile;

void check_files(std::string_view text, const ErrorFile& parsed) {
  const std::filesystem::path folder = "/dev/shm/acc-fuzz-error-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const auto source = folder / "worker.json";
  const auto target = folder / "own.json";
  std::ofstream(source, std::ios::binary) << text;
  auto read = acc::launcher::read_error_file(source);
  fuzz::require(read.has_value() == !text.empty(), "a file that is not empty is read");
  fuzz::require(!acc::launcher::read_error_file(folder), "a folder is no error file");
  if (read) {
    const acc::launcher::WorkerFailure failure = {.status = acc::launcher::Signaled{9, false},
                                                  .error_file = *read};
    leave_error_file(target, failure);
    const auto kept = acc::launcher::read_error_file(target);
    fuzz::require(kept && kept->valid == parsed.valid && kept->lost_ranks == parsed.lost_ranks,
                  "it says the same where it is kept", text);
    std::filesystem::remove(source);
    leave_error_file(target, failure);
    const auto rewritten = acc::launcher::read_error_file(target);
    fuzz::require(rewritten && rewritten->valid, "a file that is gone is written anew", text);
    read->path = parsed.path;
    fuzz::require(*read == parsed, "a file says what its text says", text);
  }
  std::filesystem::remove_all(folder);
}

// What no input of a fuzzer is long enough for.
std::string repeated(std::string_view text) {
  constexpr std::size_t kLong = std::size_t{80} << 10U;
  std::string result;
  while (!text.empty() && result.size() < kLong) result += text;
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::launcher::parse_error_file;
  const std::string_view text = fuzz::text_of(data, size);
  const ErrorFile file = parse_error_file(text);
  constexpr std::size_t kMaxText = (std::size_t{64} << 10U) + 100;
  fuzz::require(file.message.size() <= kMaxText && file.traceback.size() <= kMaxText,
                "its texts are limited");
  const auto with_code = parse_error_file(acc::launcher::with_error_code(text, acc::launcher::Exited{3}));
  fuzz::require(with_code.valid == file.valid && with_code.lost_ranks == file.lost_ranks &&
                    with_code.time == file.time && with_code.consequence == file.consequence,
                "it says the same with an exit code", text);
  const auto time = file.time.value_or(std::chrono::system_clock::time_point());
  fuzz::require(parse_error_file(acc::launcher::to_error_json(file.message, file.traceback, time)).valid,
                "it can be written again", text);
  // They take most of the time.
  constexpr std::size_t kEach = 16;
  if (size % kEach == 1) {
    check_files(text, file);
    fuzz::require(parse_error_file(repeated(text)).message.size() <= kMaxText, "a long text is limited");
  }
  return 0;
}
