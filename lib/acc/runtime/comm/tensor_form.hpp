// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace acc::detail {

// The form of a tensor: its type and shape as a fixed number of integers, which processes exchange before the
// tensor itself.

constexpr std::int64_t kMaxDimensions = 16;
// The index of the first size, after the type and the number of dimensions.
constexpr std::int64_t kFormSizes = 2;
constexpr std::int64_t kFormSize = kFormSizes + kMaxDimensions;

/// Why a tensor cannot be sent: it is undefined, sparse or of the meta device, or has more than
/// kMaxDimensions dimensions.
enum class Obstacle : std::int64_t { undefined, not_dense, no_values, dimensions };

/// What keeps this tensor from being sent; nullopt: nothing does.
std::optional<Obstacle> obstacle_of(const at::Tensor& tensor);

/// The tensor as text, such as "a sparse tensor".
std::string obstacle_text(Obstacle obstacle);

/// Throws Error{usage} with `where` for a tensor that cannot be sent.
void require_sendable(const at::Tensor& tensor, const std::string& where);

/// Writes kFormSize numbers. Throws what require_sendable() throws.
void write_form(const at::Tensor& tensor, std::int64_t* numbers, const std::string& where);

/// The same without that check: the tensor has at most kMaxDimensions dimensions, and may be sparse.
void write_form(const at::Tensor& tensor, std::int64_t* numbers);

/// What a rank says that gets numbers which none of this version sends at this point. Error{system}.
[[noreturn]] void refuse_numbers(const std::string& where);

/// Throws it when numbers from another rank are no form of a tensor. The two below expect that they are one.
void require_form(const std::int64_t* numbers, const std::string& where);

/// An uninitialized tensor of this form on the CPU.
at::Tensor empty_of_form(const std::int64_t* numbers);

/// The form as text, such as "Float [4, 2]".
std::string form_text(const std::int64_t* numbers);

}  // namespace acc::detail
