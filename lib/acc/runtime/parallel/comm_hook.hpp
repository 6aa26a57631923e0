// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include "acc/runtime/parallel/ddp_options.hpp"

namespace c10d {
class ProcessGroup;
class Reducer;
}  // namespace c10d

namespace acc {

/// From now on `reducer` sends its buckets as `hook` says.
void register_comm_hook(c10d::Reducer& reducer, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                        CommHook hook);

}  // namespace acc
