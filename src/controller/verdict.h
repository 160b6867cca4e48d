// Whether a job is over, and which of its pods are tried again.
#pragma once

#include "controller/pass.h"

namespace muster::controller {

// True when it is over. Else the restarts that are about to be made are counted, each once, before
// any of them is made.
bool Judge(Pass& pass);

// Whether the pod has failed, or was lost, and is to be made anew.
bool IsReplaced(Pass& pass, const RoleSpec& role, const TaskId& task, const Child& pod);

}  // namespace muster::controller
