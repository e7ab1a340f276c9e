# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk

Empty: ropewalk.ServiceType

SetBool: ropewalk.ServiceType

Trigger: ropewalk.ServiceType
