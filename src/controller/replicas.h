// The pods and services of a job that is at work.
#pragma once

#include "controller/pass.h"

namespace muster::controller {

// Makes what the job lacks, and removes what it has too much or must be made anew.
void FillRoles(Pass& pass);

// Removes what is left of the time before all of the job began anew.
void RemoveFormer(Pass& pass);

// Whether it belongs to what shows the job's logs, which lives as long as the job is there.
bool IsTensorboard(const TaskId& task);
void KeepTensorboard(Pass& pass);

}  // namespace muster::controller
