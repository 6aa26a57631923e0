// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"
