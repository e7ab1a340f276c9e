import builtins
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

M = TypeVar("M")

# All other names belong to rospy, which has no type annotations.
def __getattr__(name: str) -> Any: ...

class Array(np.ndarray[Any, np.dtype[Any]]):
    def __bool__(self) -> bool: ...

class Publisher(Generic[M]):
    name: str
    resolved_name: str
    data_class: builtins.type[M]
    type: str
    md5sum: str
    def __init__(
        self,
        name: str,
        data_class: builtins.type[M],
        subscriber_listener: Any = None,
        tcp_nodelay: bool = False,
        latch: bool = False,
        headers: dict[str, str] | None = None,
        queue_size: int | None = None,
        memory_limit: int = ...,
    ) -> None: ...
    @property
    def on_bus(self) -> bool: ...
    def publish(self, *args: Any, **fields: Any) -> None: ...
    def get_num_connections(self) -> int: ...
    def unregister(self) -> None: ...

class Subscriber(Generic[M]):
    name: str
    resolved_name: str
    data_class: builtins.type[M]
    type: str
    md5sum: str
    callback: Callable[..., Any] | None
    callback_args: Any
    def __init__(
        self,
        name: str,
        data_class: builtins.type[M],
        callback: Callable[..., Any] | None = None,
        callback_args: Any = None,
        queue_size: int | None = None,
        buff_size: int = 65536,
        tcp_nodelay: bool = False,
        max_held: int = ...,
    ) -> None: ...
    @property
    def on_bus(self) -> bool: ...
    def get_num_connections(self) -> int: ...
    def unregister(self) -> None: ...
