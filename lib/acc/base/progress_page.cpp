// SPDX-License-Identifier: Apache-2.0
#include "acc/base/progress_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>

#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::size_t kMagic = 0, kPid = 1, kStart = 2, kSequence = 3, kSteps = 4, kStepEnded = 5,
                      kStepDuration = 6, kSamples = 7, kTokens = 8, kLoss = 9, kSection = 10,
                      kSectionBegan = 11, kSpent = 12, kCollectives = 28, kCollectiveBegan = 29,
                      kCollective = 30, kStepScope = 34, kBackwards = 35, kSpentInSteps = 36;
constexpr std::size_t kNameWords = 4, kSectionWords = 16;
static_assert(kSections.size() <= kSectionWords && kSpent + kSectionWords == kCollectives);
static_assert(kCollective + kNameWords <= kStepScope);

constexpr std::uint64_t kNoLoss = 0x7FF8'ACC0'0000'0000;

using Words = std::array<std::uint64_t, kSpentInSteps + kSectionWords>;

constexpr std::uint64_t kVersion =
    std::bit_cast<std::uint64_t>(std::array{'A', 'C', 'C', 'P', 'A', 'G', 'E', '1'});

std::uint64_t load(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_relaxed);
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

std::uint64_t ticks_of(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::chrono::nanoseconds time_of(std::uint64_t word) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(word));
}

// The words of one moment, which `read` copies into its argument; nullopt: they cannot be read, or a write
// goes on for longer than it should.
template <class Read>
std::optional<Words> snapshot(Read read) {
  constexpr int kTries = 100;
  Words words = {};
  Words again = {};
  for (int tries = 0; tries < kTries; ++tries) {
    if (!read(words) || !read(again)) return std::nullopt;
    // Each write changes the sequence.
    if (words[kSequence] % 2 == 0 && words == again) return words;
  }
  return std::nullopt;
}

Descriptor open_to_read(const std::filesystem::path& file) {
  return Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

bool read_words(const Descriptor& file, Words& to) {
  return ::pread(file.get(), to.data(), sizeof(to), 0) == static_cast<ssize_t>(sizeof(to));
}

std::optional<Words> words_in(const Descriptor& file) {
  return snapshot([&](Words& to) { return read_words(file, to); });
}

// Its number may be another process's by now.
bool has_ended(const Words& words) {
  const std::uint64_t start = process_start(std::to_string(words[kPid]));
  return start == 0 || start != words[kStart];
}

// The page of a process that has ended is free.
bool is_free(const std::filesystem::path& file) {
  const Descriptor opened = open_to_read(file);
  const auto words = opened ? words_in(opened) : std::nullopt;
  return words && (*words)[kMagic] == kVersion && has_ended(*words);
}

// Where a file may not be so long, the attempt would be a SIGXFSZ.
bool may_write_page() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= ProgressPage::kBytes;
}

// Of the folder's path only the last part may be missing.
Descriptor make(const std::filesystem::path& file) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  Descriptor made(::open(file.c_str(), kFlags, 0600));
  if (made) return made;
  if (errno == ENOENT) {
    ::mkdir(file.parent_path().c_str(), 0700);
  } else if (errno == EEXIST && is_free(file)) {
    ::unlink(file.c_str());
  } else {
    return made;
  }
  return Descriptor(::open(file.c_str(), kFlags, 0600));
}

std::string text_of(std::span<const std::uint64_t, kNameWords> words) {
  std::array<char, sizeof(std::uint64_t) * kNameWords> text = {};
  std::memcpy(text.data(), words.data(), text.size());
  return {text.begin(), std::ranges::find(text, '\0')};
}

// No worker counts so far, and in nanoseconds it is 36 years: with more, sums would overflow.
bool is_counted(const Words& words) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 60U;
  for (std::size_t i = kSteps; i < words.size(); ++i) {
    const bool is_count = i <= kTokens || (i >= kSectionBegan && i <= kCollectiveBegan) || i >= kBackwards;
    if (is_count && words.at(i) > kMax) return false;
  }
  return true;
}

std::optional<Progress> progress_in(const Words& words) {
  if (words[kMagic] != kVersion || words[kSection] >= kSections.size()) return std::nullopt;
  if (!is_counted(words)) return std::nullopt;
  if (words[kStepScope] >= kStepScopes.size()) return std::nullopt;
  Progress progress;
  progress.pid = static_cast<pid_t>(words[kPid]);
  progress.process_start = words[kStart];
  progress.steps = static_cast<std::int64_t>(words[kSteps]);
  progress.step_scope = kStepScopes[words[kStepScope]];
  progress.backwards = static_cast<std::int64_t>(words[kBackwards]);
  progress.step_ended = time_of(words[kStepEnded]);
  progress.step_duration = time_of(words[kStepDuration]);
  progress.samples = static_cast<std::int64_t>(words[kSamples]);
  progress.tokens = static_cast<std::int64_t>(words[kTokens]);
  if (words[kLoss] != kNoLoss) progress.loss = std::bit_cast<double>(words[kLoss]);
  progress.section = kSections[words[kSection]];
  progress.section_began = time_of(words[kSectionBegan]);
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    progress.spent[i] = time_of(words[kSpent + i]);
    progress.spent_in_steps[i] = time_of(words[kSpentInSteps + i]);
  }
  progress.collectives = static_cast<std::int64_t>(words[kCollectives]);
  progress.collective_began = time_of(words[kCollectiveBegan]);
  if (progress.collective_began.count() != 0)
    progress.collective = text_of(std::span(words).subspan<kCollective, kNameWords>());
  return progress;
}

}  // namespace

std::string_view name_of(Section section) {
  switch (section) {
    case Section::other:
      return "other";
    case Section::data:
      return "data";
    case Section::forward:
      return "forward";
    case Section::backward:
      return "backward";
    case Section::communication:
      return "communication";
    case Section::optimizer:
      return "optimizer";
    case Section::saving:
      return "saving";
    case Section::evaluation:
      return "evaluation";
  }
  return "other";
}

std::chrono::nanoseconds progress_now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

/// Between its beginning and its end readers see that the words belong to different moments.
class ProgressPage::Write {
 public:
  explicit Write(std::uint64_t* words) : words_(words), sequence_(load(words[kSequence]) | 1U) {
    store(words_[kSequence], sequence_);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Write() { std::atomic_ref(words_[kSequence]).store(sequence_ + 1, std::memory_order_release); }
  Write(const Write&) = delete;
  Write& operator=(const Write&) = delete;

  std::uint64_t get(std::size_t word) const { return load(words_[word]); }
  void set(std::size_t word, std::uint64_t value) { store(words_[word], value); }
  void add(std::size_t word, std::uint64_t value) { set(word, get(word) + value); }

  void end_step(std::int64_t steps) {
    const std::uint64_t now = ticks_of(progress_now());
    const std::uint64_t before = get(kStepEnded);
    set(kSteps, static_cast<std::uint64_t>(steps));
    set(kStepDuration, before == 0 ? 0 : now - before);
    set(kStepEnded, now);
    for (std::size_t i = 0; i < kSections.size(); ++i) set(kSpentInSteps + i, get(kSpent + i));
  }

  // Before these steps are set. A training that is behind is another one.
  void set_scope_of(std::int64_t global_steps) {
    const auto scope = kStepScopes[get(kStepScope)];
    const bool goes_back = global_steps < static_cast<std::int64_t>(get(kSteps));
    if (scope == StepScope::process) set(kStepScope, static_cast<std::uint64_t>(StepScope::training));
    if (scope == StepScope::training && goes_back)
      set(kStepScope, static_cast<std::uint64_t>(StepScope::another_training));
  }

 private:
  std::uint64_t* words_;
  std::uint64_t sequence_;
};

ProgressPage::ProgressPage(const std::filesystem::path& file) {
  if (file.empty() || !may_write_page()) return;
  const Descriptor made = make(file);
  // Allocated at once: a page that a full file system cannot give later would be a SIGBUS.
  if (!made || ::posix_fallocate(made.get(), 0, kBytes) != 0) return;
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.get(), 0);
  if (mapped == MAP_FAILED) return;
  words_ = static_cast<std::uint64_t*>(mapped);
  Write write(words_);
  write.set(kPid, static_cast<std::uint64_t>(::getpid()));
  write.set(kStart, process_start("self"));
  write.set(kLoss, kNoLoss);
  write.set(kSectionBegan, ticks_of(progress_now()));
  write.set(kMagic, kVersion);
}

ProgressPage::~ProgressPage() {
  if (words_ != nullptr) ::munmap(words_, kBytes);
}

void ProgressPage::set_steps(std::int64_t steps) {
  if (words_ == nullptr || steps <= static_cast<std::int64_t>(load(words_[kSteps]))) return;
  Write(words_).end_step(steps);
}

void ProgressPage::add_step() {
  if (words_ != nullptr) set_steps(static_cast<std::int64_t>(load(words_[kSteps])) + 1);
}

void ProgressPage::restart_steps(std::int64_t steps) {
  if (words_ == nullptr) return;
  Write write(words_);
  write.set_scope_of(steps);
  write.set(kSteps, static_cast<std::uint64_t>(steps));
  write.set(kStepEnded, 0);
  write.set(kStepDuration, 0);
}

void ProgressPage::set_global_step(std::int64_t step) {
  if (words_ == nullptr) return;
  Write write(words_);
  write.set_scope_of(step);
  write.end_step(step);
}

void ProgressPage::add_samples(std::int64_t samples) {
  if (words_ != nullptr) Write(words_).add(kSamples, static_cast<std::uint64_t>(samples));
}

void ProgressPage::add_tokens(std::int64_t tokens) {
  if (words_ != nullptr) Write(words_).add(kTokens, static_cast<std::uint64_t>(tokens));
}

void ProgressPage::set_loss(double loss) {
  if (words_ != nullptr) Write(words_).set(kLoss, std::bit_cast<std::uint64_t>(loss));
}

Section ProgressPage::section() const {
  return kSections[load(words_[kSection])];
}

void ProgressPage::enter(Section section) {
  if (words_ == nullptr) return;
  const std::uint64_t now = ticks_of(progress_now());
  Write write(words_);
  const std::uint64_t before = write.get(kSection);
  write.add(kSpent + before, now - write.get(kSectionBegan));
  write.set(kSection, static_cast<std::uint64_t>(section));
  write.set(kSectionBegan, now);
}

void ProgressPage::begin_collective(std::string_view name) {
  if (words_ == nullptr) return;
  std::array<std::uint64_t, kNameWords> text = {};
  std::memcpy(text.data(), name.data(), std::min(name.size(), sizeof(text) - 1));
  const std::uint64_t now = ticks_of(progress_now());
  Write write(words_);
  for (std::size_t i = 0; i < text.size(); ++i) write.set(kCollective + i, text[i]);
  write.add(kCollectives, 1);
  write.set(kCollectiveBegan, now);
}

void ProgressPage::end_collective() {
  if (words_ != nullptr) Write(words_).set(kCollectiveBegan, 0);
}

std::optional<Progress> ProgressPage::read(const std::filesystem::path& file) {
  const Descriptor opened = open_to_read(file);
  const auto words = opened ? words_in(opened) : std::nullopt;
  return words && !has_ended(*words) ? progress_in(*words) : std::nullopt;
}

std::optional<Progress> ProgressPage::read_last(const std::filesystem::path& file) {
  const Descriptor opened = open_to_read(file);
  Words words = {};
  return opened && read_words(opened, words) ? progress_in(words) : std::nullopt;
}

}  // namespace acc
