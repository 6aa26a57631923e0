// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/kernel_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "acc/base/file_id.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kXid = "NVRM: Xid (PCI:";
// The first line of a kernel that starts.
constexpr std::string_view kBoot = "Linux version ";
// Enough of a log's first line to tell it from that of another log.
constexpr std::size_t kHead = 128;
constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

// NVIDIA's "XID Errors" (deployment guide r590): memory and its repair, the bus, NVLink, the GPU's
// processors.
struct Fault {
  int number;
  std::string_view meaning;
};
constexpr std::array<Fault, 17> kFaults = {{{48, "double-bit ECC error"},
                                            {61, "microcontroller breakpoint"},
                                            {62, "microcontroller halt"},
                                            {63, "row remapping event"},
                                            {64, "row remapping failure"},
                                            {74, "NVLink error"},
                                            {79, "fallen off the bus"},
                                            {92, "high single-bit ECC error rate"},
                                            {95, "uncontained memory error"},
                                            {109, "context switch timeout"},
                                            {110, "security fault"},
                                            {119, "GSP RPC timeout"},
                                            {120, "GSP error"},
                                            {121, "C2C link error"},
                                            {136, "link training failure"},
                                            {140, "unrecoverable ECC error"},
                                            {143, "initialization failure"}}};

std::string_view meaning_of(const Xid& xid) {
  const auto fault = std::ranges::find(kFaults, xid.number, &Fault::number);
  return fault == kFaults.end() ? std::string_view() : fault->meaning;
}

// A file, or the kernel's device: in some containers /dev/kmsg is a FIFO, a terminal or /dev/null.
Descriptor open_log(const std::filesystem::path& path) {
  const dev_t kmsg = makedev(1, 11);
  Descriptor log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!log || ::fstat(log.get(), &status) != 0) return {};
  const bool is_log = S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && status.st_rdev == kmsg);
  return is_log ? std::move(log) : Descriptor();
}

// The first bytes of a file. Empty for the kernel's device, of which each read takes a record.
std::string head_of(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string head(kHead, '\0');
  const ssize_t size = ::pread(fd, head.data(), head.size(), 0);
  head.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return head;
}

// From the descriptor's offset on, of a file at most the last kMaxFile bytes, and all of one that has become
// shorter. Absent if reading fails.
std::optional<std::string> read_rest(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t offset = ::lseek(fd, 0, SEEK_CUR);
    const off_t begin = offset > status.st_size ? 0 : offset;
    ::lseek(fd, std::max(begin, status.st_size - static_cast<off_t>(kMaxFile)), SEEK_SET);
  }
  std::string log;
  std::array<char, 8192> record = {};  // one read(2) of /dev/kmsg returns one record
  while (true) {
    const ssize_t size = ::read(fd, record.data(), record.size());
    if (size > 0) {
      log.append(record.data(), static_cast<std::size_t>(size));
    } else if (size == 0 || errno == EAGAIN) {
      return log;
    } else if (errno != EPIPE && errno != EINTR) {
      // EPIPE: records were overwritten since, and the next read continues with the oldest.
      return std::nullopt;
    }
  }
}

// Whether a message that follows `prefix` in its line is the kernel's: behind the fields of /dev/kmsg
// ("5,1,0,-;"), or the stamp, host and tag of syslog ("Dec  1 00:00:00 host kernel: ", in RFC 5424
// "<5>1 2026-12-01T00:00:00Z host kernel - - - "), and the kernel's own level and time ("<5>[    0.000000]
// "), if any. Others write to both, such as the console of a virtual machine.
bool is_before_kernel_message(std::string_view prefix) {
  // From 8 on it is a user's.
  const bool is_kernel_record = prefix.size() > 1 && prefix[0] >= '0' && prefix[0] <= '7' && prefix[1] == ',';
  if (is_kernel_record) return prefix.find(';') == prefix.size() - 1;
  constexpr std::string_view kTag = "kernel: ";
  constexpr std::string_view kTagOfRfc5424 = " kernel - - - ";
  const auto tag = prefix.starts_with('<') ? prefix.find(kTagOfRfc5424) : std::string_view::npos;
  const auto tag_end = prefix.find(": ");
  if (tag != std::string_view::npos) {
    prefix.remove_prefix(tag + kTagOfRfc5424.size());
    if (prefix.empty()) return true;
  } else if (tag_end != std::string_view::npos) {
    if (!prefix.substr(0, tag_end + 2).ends_with(kTag)) return false;
    prefix.remove_prefix(tag_end + 2);
    if (prefix.empty()) return true;
  }
  return (prefix.starts_with('[') || prefix.starts_with('<')) && prefix.ends_with("] ") &&
         prefix.find_first_not_of("<>[]. TC0123456789") == std::string_view::npos;
}

// Where the kernel that wrote the end of the log has started; 0 if the text does not show it.
std::size_t last_boot(std::string_view log) {
  for (auto boot = log.rfind(kBoot); boot != std::string_view::npos && boot > 0;
       boot = log.rfind(kBoot, boot - 1)) {
    const auto line = log.rfind('\n', boot) + 1;
    if (is_before_kernel_message(log.substr(line, boot - line))) return boot;
  }
  return 0;
}

}  // namespace

std::vector<Xid> find_xids(std::string_view log) {
  log.remove_prefix(last_boot(log));
  std::vector<Xid> xids;
  for (auto position = log.find(kXid); position != std::string_view::npos; position = log.find(kXid)) {
    log.remove_prefix(position + kXid.size());
    const std::string_view line = log.substr(0, log.find('\n'));
    const auto end = line.find("): ");
    if (end == std::string_view::npos) continue;
    Xid xid{.pci_address = std::string(line.substr(0, end))};
    const std::string_view number = line.substr(end + 3);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), xid.number);
    if (read.ec == std::errc() && std::ranges::find(xids, xid) == xids.end()) xids.push_back(xid);
  }
  return xids;
}

bool is_fault(const Xid& xid) {
  return !meaning_of(xid).empty();
}

std::string to_string(const Xid& xid) {
  const std::string meaning = is_fault(xid) ? fmt::format(" ({})", meaning_of(xid)) : "";
  return fmt::format("Xid {}{} of the GPU at {}", xid.number, meaning, xid.pci_address);
}

std::optional<std::string> read_kernel_log() {
  for (const std::filesystem::path& path : KernelLogPaths{}.logs) {
    const Descriptor log = open_log(path);
    if (auto text = log ? read_rest(log.get()) : std::nullopt) return text;
  }
  return std::nullopt;
}

XidWatch::XidWatch(const KernelLogPaths& paths) {
  if (::access(paths.driver.c_str(), F_OK) != 0) return;
  for (const std::filesystem::path& path : paths.logs) {
    Descriptor log = open_log(path);
    if (!log || ::lseek(log.get(), 0, SEEK_END) < 0) continue;
    path_ = path;
    log_ = std::move(log);
    head_ = head_of(log_.get());
    return;
  }
}

std::optional<std::vector<Xid>> XidWatch::faults() {
  if (!log_) return std::nullopt;
  add_new();
  const auto opened = file_id(log_.get());
  const auto present = file_id(path_);
  const bool rotated = opened && present && opened != present;
  if (Descriptor next = rotated ? open_log(path_) : Descriptor()) {
    log_ = std::move(next);
    head_.clear();
    unfinished_.clear();
    add_new();
  }
  return faults_;
}

void XidWatch::add_new() {
  begin_again_if_truncated();
  // syslog may be in the middle of a line.
  std::string lines = std::exchange(unfinished_, {}) + read_rest(log_.get()).value_or("");
  const auto end = lines.rfind('\n') + 1;
  unfinished_ = lines.substr(end);
  lines.resize(end);
  for (const Xid& xid : find_xids(lines)) {
    if (is_fault(xid) && std::ranges::find(faults_, xid) == faults_.end()) faults_.push_back(xid);
  }
}

// A log that was truncated may have grown beyond the offset again, but with another beginning.
void XidWatch::begin_again_if_truncated() {
  std::string head = head_of(log_.get());
  if (!head.starts_with(head_)) {
    ::lseek(log_.get(), 0, SEEK_SET);
    unfinished_.clear();
  }
  head_ = std::move(head);
}

}  // namespace acc::launcher
