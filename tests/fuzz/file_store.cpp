// SPDX-License-Identifier: Apache-2.0
// The file of a torch FileStore: whole entries are read, what is cut waits for the rest, other bytes are
// refused, and what is written is read.
#include "acc/store/file_log.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::FileLog;

void check_writing(std::string_view value) {
  FileLog log;
  const std::string entry = acc::launcher::file_log_entry("/key", value);
  fuzz::require(log.read(entry) == entry.size() && log.find("/key") != nullptr && *log.find("/key") == value,
                "an entry is read as it was written");
  const std::string deletion = acc::launcher::file_log_deletion("/key");
  fuzz::require(log.read(deletion) == deletion.size() && log.find("/key") == nullptr,
                "a key that was deleted is not there");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  fuzz::Choices choices(bytes);
  const std::size_t step = 1 + choices.below(32);
  FileLog whole;
  FileLog grown;
  const auto used = fuzz::value_or_error([&] { return whole.read(bytes); });
  fuzz::require(!used || *used <= bytes.size(), "no more is used than there is");
  std::size_t used_in_steps = 0;
  bool is_refused = false;
  for (std::size_t end = std::min(step, bytes.size()); !is_refused;
       end = std::min(end + step, bytes.size())) {
    const auto more =
        fuzz::value_or_error([&] { return grown.read(bytes.substr(used_in_steps, end - used_in_steps)); });
    is_refused = !more;
    used_in_steps += more.value_or(0);
    if (end == bytes.size()) break;
  }
  fuzz::require(is_refused == !used && (!used || used_in_steps == *used),
                "a file that grows is read as a whole one");
  for (const char* key : {"/a", "/b", "refcount/a"}) {
    const std::string* value = whole.find(key);
    const std::string* same = grown.find(key);
    fuzz::require(is_refused || (value == nullptr) == (same == nullptr), "a key is there in both", key);
    fuzz::require(is_refused || value == nullptr || *value == *same, "a key has the same value in both", key);
  }
  check_writing(bytes);
  return 0;
}
