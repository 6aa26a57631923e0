// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/rendezvous_plan.hpp"

namespace acc::launcher {

/// What `--rdzv-conf` says, `key=value,key=value` by the keys of torchrun 2.11, goes into `plan`, whose back
/// end is known. A key that has no effect with this back end is told in `notes`. Throws Error{usage} with
/// `where` and all that is wrong: keys that nobody knows with the nearest one, and those that have a flag.
void apply_rdzv_conf(std::string_view text, const std::string& where, RendezvousPlan& plan,
                     std::vector<std::string>& notes);

}  // namespace acc::launcher
