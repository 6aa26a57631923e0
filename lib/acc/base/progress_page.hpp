// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace acc {

/// What a worker is busy with. The values are those of the page: more may be added at the end.
enum class Section : std::uint8_t {
  other,
  data,
  forward,
  backward,
  communication,
  optimizer,
  saving,
  evaluation
};

inline constexpr std::array kSections = {Section::other,    Section::data,          Section::forward,
                                         Section::backward, Section::communication, Section::optimizer,
                                         Section::saving,   Section::evaluation};

/// `data`, `forward`, ...
std::string_view name_of(Section section);

/// What the steps of a worker count. The values are those of the page.
enum class StepScope : std::uint8_t {
  process,          ///< those of this process: where it began in its training is not known
  training,         ///< those of its training, over all restarts
  another_training  ///< the same, of a training that came after another one in this process
};

inline constexpr std::array kStepScopes = {StepScope::process, StepScope::training,
                                           StepScope::another_training};

/// The progress of a worker at one moment. Moments are of CLOCK_MONOTONIC, which all processes of a machine
/// share. On a GPU they are the host's, which queues work and does not wait for it.
struct Progress {
  /// The process that writes, and when it started, in the kernel's clock ticks (proc(5), starttime).
  pid_t pid = 0;
  std::uint64_t process_start = 0;
  /// Optimizer steps; 0 before the first one has ended.
  std::int64_t steps = 0;
  StepScope step_scope = StepScope::process;
  /// Backwards that have ended well, of a process whose steps nobody may count: of `--watch`; else 0.
  std::int64_t backwards = 0;
  std::chrono::nanoseconds step_ended = {};
  /// Of the last step, from the end of the one before; zero for the first.
  std::chrono::nanoseconds step_duration = {};
  /// What the worker has read, if it says so.
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::optional<double> loss = {};
  Section section = Section::other;
  std::chrono::nanoseconds section_began = {};
  /// The time in each section before the present one began.
  std::array<std::chrono::nanoseconds, kSections.size()> spent = {};
  /// The same when the last step ended, so that whole steps can be compared; all zero: it does not say so.
  std::array<std::chrono::nanoseconds, kSections.size()> spent_in_steps = {};
  /// How many collectives have begun, the name of the one that the worker is in, and when that began; an
  /// empty name: in none.
  std::int64_t collectives = 0;
  std::string collective = {};
  std::chrono::nanoseconds collective_began = {};

  bool operator==(const Progress&) const = default;
};

/// The page of shared memory in which a worker says how far it is: a file of one page, which the first
/// process of a rank that opens it makes, owns and maps until it ends; the launcher names it in ACC_PROGRESS
/// and reads it. Version 1 has these words of 64 bits in the byte order of the machine:
///
///     0 "ACCPAGE1"   1 pid             2 start of the process   3 sequence: odd while a write goes on
///     4 steps        5 end of the last 6 its duration           7 samples             8 tokens
///     9 loss, as a double            10 section               11 when it began
///    12..27 time in each section      28 collectives           29 when the present one began, 0: in none
///    30..33 its name, ended by zeros   34 what the steps count (StepScope)   35 backwards
///    36..51 words 12..27 at the end of the last step
///
/// A page that says no more than that the rank is followed has pid 0 and start 1: it is free for the first
/// process that writes. No loss is the NaN 0x7FF8ACC000000000, which no operation of a processor gives.
/// One thread writes. A write costs no system call, and nobody waits for anybody.
class ProgressPage {
 public:
  static constexpr std::size_t kBytes = 4096;

  /// Makes the file. Without one (the path is empty, another process owns it, the file system is full) all
  /// calls have no effect: progress is never a reason to fail.
  explicit ProgressPage(const std::filesystem::path& file);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  bool is_open() const { return words_ != nullptr; }

  /// `steps` have ended. What is not above the number before changes nothing: several optimizers step once
  /// each in a training step.
  void set_steps(std::int64_t steps);
  /// One more has ended.
  void add_step();
  /// A training begins, or goes on, after `steps` of it.
  void restart_steps(std::int64_t steps);
  /// Step `step` of the training has ended, counted over all restarts.
  void set_global_step(std::int64_t step);
  void add_samples(std::int64_t samples);
  void add_tokens(std::int64_t tokens);
  void set_loss(double loss);

  /// Of a page that is open.
  Section section() const;
  void enter(Section section);

  /// The worker is in a collective. Names are cut after 31 bytes.
  void begin_collective(std::string_view name);
  void end_collective();

  /// The page that another process writes; nullopt: there is none, it is of another version, it is being
  /// written, or its process has ended. Throws nothing. It is not mapped: whoever writes it may also cut it
  /// short.
  static std::optional<Progress> read(const std::filesystem::path& file);

  /// What a process has left that may have ended in the middle of a write; nullopt: no page of this version.
  /// Throws nothing.
  static std::optional<Progress> read_last(const std::filesystem::path& file);

 private:
  class Write;

  std::uint64_t* words_ = nullptr;
};

/// CLOCK_MONOTONIC, as in Progress.
std::chrono::nanoseconds progress_now();

}  // namespace acc
