// SPDX-License-Identifier: Apache-2.0
// What workers write to their streams, and what py-spy says of their stacks: what is kept for a report is
// limited, and what is shown moves no cursor.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "acc/control/python_position.hpp"
#include "acc/launch/error_text.hpp"
#include "fuzz/promise.hpp"

namespace {

// More than is kept, which no input of a fuzzer is.
std::string repeated(std::string_view text) {
  std::string result;
  while (!text.empty() && result.size() <= 2 * acc::launcher::Tail::kMaxRaw) result += text;
  return result;
}

void check_tail_of_file(std::string_view text) {
  const std::filesystem::path file = "/dev/shm/acc-fuzz-output-" + std::to_string(::getpid());
  fuzz::require(acc::launcher::tail_of_file(file).empty(), "no file has no tail");
  std::ofstream(file, std::ios::binary) << text;
  acc::launcher::Tail tail;
  tail.append(text);
  fuzz::require(acc::launcher::tail_of_file(file) == tail.lines(), "a file has the tail of its text", text);
  std::filesystem::remove(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  fuzz::Choices choices(text);
  const std::size_t piece_size = 1 + choices.below(200);
  const std::string shown = acc::printable(text);
  fuzz::require(acc::printable(shown) == shown, "what was made printable is printable", shown);
  const std::string line = acc::shown_line(text.substr(0, text.find('\n')));
  fuzz::require(acc::printable(line) == line && line.find('\n') == std::string::npos,
                "a line is shown as one", line);
  fuzz::require(acc::launcher::readable_error(text).size() <= text.size(), "an error does not grow", text);
  for (const auto& position :
       {acc::launcher::position_of_main_thread(text), acc::launcher::position_of_traceback(text)}) {
    if (!position) continue;
    const std::string words = to_string(*position);
    fuzz::require(acc::printable(words) == words, "a position is printable", words);
    fuzz::require(standing_of(*position).position == words, "a rank stands at its position", words);
  }
  acc::launcher::shorten_python_stacks(text);
  check_tail_of_file(text);
  acc::launcher::Tail tail;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(piece_size, rest.size())))
    tail.append(rest.substr(0, piece_size));
  const std::string whole = repeated(text);
  tail.append(whole);
  tail.append(whole);
  fuzz::require(tail.lines().size() <= acc::launcher::Tail::kMaxBytes, "a tail is limited");
  return 0;
}
