// The pods and services of a job that is at work.
#pragma once

#include "controller/pass.h"

namespace muster::controller {

// Makes what the job lacks, and removes what it has too much or must be made anew.
void FillRoles(Pass& pass);

}  // namespace muster::controller
