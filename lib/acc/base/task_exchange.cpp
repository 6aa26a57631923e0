// SPDX-License-Identifier: Apache-2.0
#include "acc/base/task_exchange.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr const char* kKey = "acc-first-task";
constexpr int kSeconds = 60;
// Where MPICH and those that descend from it have the numbers of tasks of each node.
constexpr const char* kMapping = "PMI_process_mapping";

[[noreturn]] void fail_exchange(const std::string& where, const std::string& what) {
  throw Error({.kind = ErrorKind::rendezvous,
               .what = what,
               .where = where,
               .hint = "with --master-addr the processes meet without the help of mpirun"});
}

// Of `(vector,(0,2,1),(2,1,4))`: from node 0 on two nodes with a task each, then from node 2 one with four.
std::optional<int> nodes_of_mapping(const std::string& mapping) {
  std::int64_t nodes = 0;
  const std::vector<std::string> blocks = split(mapping, '(');
  for (std::size_t i = 2; i < blocks.size(); ++i) {
    const std::vector<std::string> numbers = split(blocks[i].substr(0, blocks[i].find(')')), ',');
    const auto first = numbers.size() == 3 ? parse_integer(numbers[0]) : std::nullopt;
    const auto count = numbers.size() == 3 ? parse_integer(numbers[1]) : std::nullopt;
    constexpr std::int64_t kMax = 1'000'000;
    if (!first || !count || *first < 0 || *first > kMax || *count < 1 || *count > kMax) return {};
    nodes = std::max(nodes, *first + *count);
  }
  return nodes > 0 ? std::optional(static_cast<int>(nodes)) : std::nullopt;
}

// The client of PMI-1: a line of `key=value` words each way.
class Pmi1 {
 public:
  explicit Pmi1(int fd) : fd_(fd) {}

  FirstTask exchange(int rank, const std::string& text) {
    const std::string job = begin();
    if (rank == 0) ask(fmt::format("cmd=put kvsname={} key={} value={}", job, kKey, text));
    ask("cmd=barrier_in");
    FirstTask first = {word(ask(fmt::format("cmd=get kvsname={} key={}", job, kKey)), "value"), job};
    first.num_nodes = num_nodes(job);
    ask("cmd=finalize");
    return first;
  }

  std::optional<int> count_nodes() {
    const std::optional<int> nodes = num_nodes(begin());
    ask("cmd=finalize");
    return nodes;
  }

 private:
  // Returns the name of the job.
  std::string begin() {
    ask("cmd=init pmi_version=1 pmi_subversion=1");
    return word(ask("cmd=get_my_kvsname"), "kvsname");
  }

  std::optional<int> num_nodes(const std::string& job) {
    return nodes_of_mapping(
        word(answer_to(fmt::format("cmd=get kvsname={} key={}", job, kMapping)), "value"));
  }

  std::string answer_to(const std::string& command) {
    const std::string line = command + "\n";
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      fail_exchange("PMI_FD", std::generic_category().message(errno));
    return read_line();
  }

  std::string ask(const std::string& command) {
    const std::string answer = answer_to(command);
    const std::string code = word(answer, "rc");
    if (!code.empty() && code != "0")
      fail_exchange("PMI_FD", fmt::format("'{}' was answered '{}'", shorten(command), shorten(answer)));
    return answer;
  }

  // The answer to barrier_in comes when all tasks have asked.
  std::string read_line() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kSeconds);
    std::string line;
    for (char c = 0;;) {
      const auto remaining =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
      const int ready = remaining.count() > 0 ? ::poll(&readable, 1, static_cast<int>(remaining.count())) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0)
        fail_exchange("PMI_FD", fmt::format("some process of the job did not come within {} s", kSeconds));
      const ssize_t got = ::read(fd_, &c, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1) fail_exchange("PMI_FD", "the launcher ended the connection");
      if (c == '\n') return line;
      line += c;
    }
  }

  // The value of `name=value` in the line; empty if there is none.
  static std::string word(const std::string& line, std::string_view name) {
    for (const std::string& one : split(line, ' ')) {
      if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
        return one.substr(name.size() + 1);
    }
    return {};
  }

  int fd_;
};

// The parts of pmix_common.h and pmix.h of PMIx 3 to 5 that are used here.
namespace pmix {

struct Process {
  std::array<char, 256> job;
  std::uint32_t rank;
};
struct Value {
  std::uint16_t type;
  union {
    char* text;
    bool flag;
    std::array<void*, 3> largest;
  };
};
struct Info {
  std::array<char, 512> key;
  std::uint32_t flags;
  Value value;
};
constexpr std::uint16_t kBool = 1;
constexpr std::uint16_t kString = 3;
constexpr std::uint8_t kGlobal = 3;
constexpr std::uint32_t kEveryRank = UINT32_MAX - 1;
constexpr std::uint16_t kInt = 6;

}  // namespace pmix

class PmixLibrary {
 public:
  PmixLibrary() : handle_(::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL)) {}
  ~PmixLibrary() = default;  // the library's own thread may not have ended: it stays loaded
  PmixLibrary(const PmixLibrary&) = delete;
  PmixLibrary& operator=(const PmixLibrary&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }

  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    void* symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) fail_exchange("libpmix.so.2", fmt::format("has no {}", name));
    int (*function)(Arguments...) = nullptr;
    std::memcpy(&function, &symbol, sizeof function);
    if (const int code = function(arguments...); code != 0)
      fail_exchange(name, fmt::format("failed with PMIx status {}", code));
  }

 private:
  void* handle_;
};

FirstTask exchange_with_pmix(const PmixLibrary& library, int rank, std::string text) {
  pmix::Process self = {};
  library.call<pmix::Process*, pmix::Info*, std::size_t>("PMIx_Init", &self, nullptr, 0);
  if (rank == 0) {
    pmix::Value value = {};
    value.type = pmix::kString;
    value.text = text.data();
    library.call<std::uint8_t, const char*, pmix::Value*>("PMIx_Put", pmix::kGlobal, kKey, &value);
    library.call<>("PMIx_Commit");
  }
  pmix::Process all = self;
  all.rank = pmix::kEveryRank;
  std::array<pmix::Info, 2> infos = {};
  std::strcpy(infos[0].key.data(), "pmix.collect");
  infos[0].value.type = pmix::kBool;
  infos[0].value.flag = true;
  std::strcpy(infos[1].key.data(), "pmix.timeout");
  infos[1].value.type = pmix::kInt;
  std::memcpy(&infos[1].value.text, &kSeconds, sizeof kSeconds);
  library.call<const pmix::Process*, std::size_t, const pmix::Info*, std::size_t>("PMIx_Fence", &all, 1,
                                                                                  infos.data(), infos.size());
  pmix::Process first = self;
  first.rank = 0;
  pmix::Value* value = nullptr;
  library.call<const pmix::Process*, const char*, const pmix::Info*, std::size_t, pmix::Value**>(
      "PMIx_Get", &first, kKey, nullptr, 0, &value);
  FirstTask result = {.text = value->type == pmix::kString ? value->text : "", .job = self.job.data()};
  library.call<const pmix::Info*, std::size_t>("PMIx_Finalize", nullptr, 0);
  return result;
}

std::optional<Pmi1> pmi1_of(const Environment& environment) {
  const auto fd = parse_integer(environment.get("PMI_FD"));
  if (!fd || *fd < 0 || *fd >= 1'000'000) return std::nullopt;
  return Pmi1(static_cast<int>(*fd));
}

}  // namespace

std::optional<FirstTask> exchange_first_task(const Environment& environment, int rank,
                                             const std::string& text) {
  if (auto pmi1 = pmi1_of(environment)) return pmi1->exchange(rank, text);
  if (!environment.contains("PMIX_NAMESPACE")) return std::nullopt;
  const PmixLibrary library;
  if (!library) return std::nullopt;
  return exchange_with_pmix(library, rank, text);
}

std::optional<int> count_task_nodes(const Environment& environment) try {
  auto pmi1 = pmi1_of(environment);
  return pmi1 ? pmi1->count_nodes() : std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace acc
