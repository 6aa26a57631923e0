// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/kernel_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kXid = "NVRM: Xid (PCI:";
// The first line of a kernel that starts.
constexpr std::string_view kBoot = "Linux version ";
constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

// One read(2) of /dev/kmsg returns one record.
std::optional<std::string> read_kmsg() {
  const Descriptor device(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!device) return std::nullopt;
  std::string log;
  std::array<char, 8192> record = {};
  while (true) {
    const ssize_t size = ::read(device.get(), record.data(), record.size());
    if (size > 0) {
      log.append(record.data(), static_cast<std::size_t>(size));
    } else if (size == 0 || (errno != EPIPE && errno != EINTR)) {
      // EPIPE: records were overwritten since, and the next read continues with the oldest.
      break;
    }
  }
  return errno == EAGAIN ? std::optional(log) : std::nullopt;
}

std::optional<std::string> read_end(const char* path) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string log(std::min(size, kMaxFile), '\0');
  const ssize_t got = ::pread(file.get(), log.data(), log.size(), static_cast<off_t>(size - log.size()));
  if (got < 0) return std::nullopt;
  log.resize(static_cast<std::size_t>(got));
  return log;
}

}  // namespace

std::vector<Xid> find_xids(std::string_view log) {
  if (const auto boot = log.rfind(kBoot); boot != std::string_view::npos) log.remove_prefix(boot);
  std::vector<Xid> found;
  for (auto at = log.find(kXid); at != std::string_view::npos; at = log.find(kXid)) {
    log.remove_prefix(at + kXid.size());
    const std::string_view line = log.substr(0, log.find('\n'));
    const auto end = line.find("): ");
    if (end == std::string_view::npos) continue;
    Xid xid{.pci_address = std::string(line.substr(0, end))};
    const std::string_view number = line.substr(end + 3);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), xid.number);
    if (read.ec == std::errc() && std::ranges::find(found, xid) == found.end()) found.push_back(xid);
  }
  return found;
}

// NVIDIA's "XID Errors" (deployment guide r590): memory and its repair, the bus, NVLink, the GPU's
// processors.
bool is_fault(const Xid& xid) {
  constexpr std::array kFaults = {48, 61, 62, 63, 64, 74, 79, 92, 95, 109, 110, 119, 120, 121, 136, 140, 143};
  return std::ranges::find(kFaults, xid.number) != kFaults.end();
}

std::optional<std::string> read_kernel_log() {
  if (auto log = read_kmsg()) return log;
  for (const char* path : {"/var/log/kern.log", "/var/log/messages", "/var/log/syslog"}) {
    if (auto log = read_end(path)) return log;
  }
  return std::nullopt;
}

}  // namespace acc::launcher
