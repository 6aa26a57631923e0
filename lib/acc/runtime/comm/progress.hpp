// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "acc/base/progress_page.hpp"

namespace acc {

/// While it exists, this process is in `section`, which `acc ps` shows; then in the one before. Prepared
/// models, loaders and optimizers, the Accelerator and the Trainer do this themselves: it is for what a
/// program does by itself. What happens in an evaluation or while saving counts as that. Of several threads
/// the first that trains (forward, backward, optimizer) counts until it ends, and before that the first of
/// all. Without a launcher that reads it, nothing happens; it takes less than 100 ns, and never fails.
class [[nodiscard]] ProgressSection {
 public:
  explicit ProgressSection(Section section) noexcept;
  ~ProgressSection();
  ProgressSection(const ProgressSection&) = delete;
  ProgressSection& operator=(const ProgressSection&) = delete;

 private:
  ProgressPage* page_ = nullptr;
  Section before_ = Section::other;
};

/// What a program knows of a training step.
struct StepProgress {
  /// How many steps of the training have ended, those before a restart included. Absent: one more than
  /// before.
  std::optional<std::int64_t> global_step = {};
  std::int64_t samples = 0;         ///< Those that this process has read in it.
  std::int64_t tokens = 0;          ///< Those that this process has read in it.
  std::optional<double> loss = {};  ///< On this process.
};

/// A training step has ended. Prepared optimizers count steps themselves, until this is called. Costs and
/// promises are those of ProgressSection.
void report_step(const StepProgress& progress = {}) noexcept;

namespace detail {

/// The steps of one optimizer. They count as those of the training, unless the program or a Trainer says
/// which step it is. Of several optimizers that step once each in a training step the first counts, until it
/// is gone, another one steps twice without it, or others step without it that are gone after each step.
class OptimizerSteps {
 public:
  OptimizerSteps() noexcept;
  ~OptimizerSteps();
  OptimizerSteps(const OptimizerSteps&) = delete;
  OptimizerSteps& operator=(const OptimizerSteps&) = delete;

  /// One more has ended.
  void report() const noexcept;

 private:
  std::uint64_t id_;
};

void report_loss(double loss) noexcept;

/// While it exists, a training counts its own steps, beginning after `steps`.
class [[nodiscard]] ProgressTraining {
 public:
  explicit ProgressTraining(std::int64_t steps) noexcept;
  ~ProgressTraining();
  ProgressTraining(const ProgressTraining&) = delete;
  ProgressTraining& operator=(const ProgressTraining&) = delete;
};

/// So many steps of this training have ended.
void report_training_steps(std::int64_t steps) noexcept;

/// The section `communication`, with the name of the collective.
class [[nodiscard]] ProgressCollective {
 public:
  explicit ProgressCollective(std::string_view name) noexcept;
  ~ProgressCollective();
  ProgressCollective(const ProgressCollective&) = delete;
  ProgressCollective& operator=(const ProgressCollective&) = delete;

 private:
  ProgressSection section_;
  ProgressPage* page_ = nullptr;
};

}  // namespace detail
}  // namespace acc
