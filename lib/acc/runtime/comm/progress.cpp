// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/progress.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <set>

#include "acc/base/environment.hpp"

namespace acc {
namespace {

std::atomic<ProgressPage*> own_page = nullptr;

// A thread that ends leaves its slot to the next.
struct Thread {
  ~Thread();
};
thread_local const Thread self = {};

// The thread that counts, by the address of something of its own, and whether it trains.
std::atomic<const Thread*> writer = nullptr;
std::atomic<bool> writer_trains = false;

Thread::~Thread() {
  if (writer != this) return;
  writer_trains = false;
  const Thread* own = this;
  writer.compare_exchange_strong(own, nullptr);
}

// The program, or a Trainer, says which step it is.
std::atomic<bool> steps_are_said = false;
// A Trainer's training is over: steps after it are those of another one.
std::atomic<bool> training_is_over = false;

// The optimizer whose steps count; 0: none.
std::atomic<std::uint64_t> counted_optimizer = 0;
// Those that have stepped since its last step and are not gone, and how often. Only the thread that writes
// the page uses them.
std::set<std::uint64_t> other_optimizers = {};  // NOLINT(cert-err58-cpp)
std::size_t steps_of_others = 0;

// Whether a step of this optimizer is one of the training's.
bool counts(std::uint64_t optimizer) {
  // More steps than there are others: each of these is gone after its step.
  const bool are_many = steps_of_others > 2 * other_optimizers.size() + 8;
  if (counted_optimizer == 0 || are_many || other_optimizers.contains(optimizer))
    counted_optimizer = optimizer;
  if (counted_optimizer != optimizer) {
    other_optimizers.insert(optimizer);
    ++steps_of_others;
    return false;
  }
  other_optimizers.clear();
  steps_of_others = 0;
  return true;
}

void begin_other_training(ProgressPage& page) {
  if (training_is_over.exchange(false)) page.restart_steps(0);
}

// A fork has a rank's page, but is not the rank's process. A worker that was forked opens its own.
void forget_page() {
  own_page = nullptr;
  writer = nullptr;
  writer_trains = false;
  counted_optimizer = 0;
}

// It lives until the process ends: threads and destructors may write to the last.
ProgressPage* open_page() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (ProgressPage* page = own_page) return page;
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, forget_page); });
  return own_page = new ProgressPage(Environment::of_process().get("ACC_PROGRESS"));  // NOLINT
}

// Gives this thread the slot of one that counts, if it is free, or if this one trains and that one does not.
void claim_slot(ProgressPage& page, bool trains) {
  const Thread* previous_writer = nullptr;
  if (writer.compare_exchange_strong(previous_writer, &self) || previous_writer == &self) {
    if (trains) writer_trains = true;
  } else if (trains && !writer_trains.exchange(true)) {
    writer = &self;
    page.end_collective();
    page.enter(Section::other);
  }
}

// Not in a fork, nor after another thread has taken the slot.
bool may_write(const ProgressPage* page) {
  return page != nullptr && page == own_page && writer == &self;
}

// Null: nobody reads, or another thread writes.
ProgressPage* page_to_write(bool trains) noexcept try {
  ProgressPage* page = own_page.load(std::memory_order_acquire);
  if (page == nullptr) page = open_page();
  if (!page->is_open()) return nullptr;
  claim_slot(*page, trains);
  return may_write(page) ? page : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

bool is_training(Section section) {
  return section == Section::forward || section == Section::backward || section == Section::optimizer;
}

bool is_whole(Section section) {
  return section == Section::evaluation || section == Section::saving;
}

}  // namespace

ProgressSection::ProgressSection(Section section) noexcept : page_(page_to_write(is_training(section))) {
  if (page_ == nullptr) return;
  before_ = page_->section();
  if (is_whole(before_)) {
    page_ = nullptr;
  } else {
    page_->enter(section);
  }
}

ProgressSection::~ProgressSection() {
  if (may_write(page_)) page_->enter(before_);
}

void report_step(const StepProgress& progress) noexcept {
  ProgressPage* page = page_to_write(true);
  if (page == nullptr) return;
  steps_are_said = true;
  begin_other_training(*page);
  progress.global_step ? page->set_global_step(*progress.global_step) : page->add_step();
  if (progress.samples != 0) page->add_samples(progress.samples);
  if (progress.tokens != 0) page->add_tokens(progress.tokens);
  if (progress.loss) page->set_loss(*progress.loss);
}

namespace detail {

namespace {

std::uint64_t next_optimizer() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

OptimizerSteps::OptimizerSteps() noexcept : id_(next_optimizer()) {}

OptimizerSteps::~OptimizerSteps() {
  std::uint64_t own = id_;
  counted_optimizer.compare_exchange_strong(own, 0);
  if (writer == &self) other_optimizers.erase(id_);
}

void OptimizerSteps::report() const noexcept try {
  if (steps_are_said) return;
  ProgressPage* page = page_to_write(true);
  if (page == nullptr || !counts(id_)) return;
  begin_other_training(*page);
  page->add_step();
} catch (const std::exception&) {  // NOLINT: nobody sees this step
}

ProgressTraining::ProgressTraining(std::int64_t steps) noexcept {
  steps_are_said = true;
  training_is_over = false;
  if (ProgressPage* page = page_to_write(true)) page->restart_steps(steps);
}

ProgressTraining::~ProgressTraining() {
  steps_are_said = false;
  training_is_over = true;
}

void report_training_steps(std::int64_t steps) noexcept {
  if (ProgressPage* page = page_to_write(true)) page->set_steps(steps);
}

void report_loss(double loss) noexcept {
  if (ProgressPage* page = page_to_write(true)) page->set_loss(loss);
}

ProgressCollective::ProgressCollective(std::string_view name) noexcept
    : section_(Section::communication), page_(page_to_write(false)) {
  if (page_ != nullptr) page_->begin_collective(name);
}

ProgressCollective::~ProgressCollective() {
  if (may_write(page_)) page_->end_collective();
}

}  // namespace detail
}  // namespace acc
