"""Words that say nothing about what a text is about: they are no features. Part of the scheme by content.

A modest list: what grammar demands in every text of a language. A longer one would make short texts empty.
"""

__all__ = ["STOP_WORDS"]

_CHINESE = """
的 地 得 了 着 过 吗 呢 吧 啊 呀 哦 嘛 么 哪 啦 哇 之 乎 者 也 矣 焉 所 以 而 且 其 于 与 及 和 或 并 则
但 即 若 是 在 有 不 没 没有 就 都 还 又 再 很 太 更 最 只 才 已 已经 曾 将 把 被 让 给 对 对于 关于 从
自 由 向 往 到 至 为 为了 因 因为 由于 所以 因此 因而 虽然 但是 可是 然而 不过 而且 并且 或者 以及 如果
假如 只要 只有 即使 既然 无论 不管 不仅 除了 按照 根据 通过 随着 作为 比 跟 同 等 等等 们 我 你 您 他 她
它 我们 你们 他们 她们 它们 自己 咱们 这 那 这个 那个 这些 那些 这里 那里 这样 那样 这么 那么 什么 怎么
怎样 如何 为什么 哪里 哪个 谁 几 多少 某 每 各 此 该 本 另 其他 其它 其中 一 一个 一些 一种 个 上 中 下
里 内 外 前 后 时 会 能 能够 可 可以 要 应 应该 须 必须 去 来 说 做 使 使得 用 当 像 如 例如 比如 之一
之前 之后 以后 以前 以上 以下 时候 的话 而已 罢了 不是 就是 还是 也是
"""

_ENGLISH = """
a an the and or but nor so if then than that this these those there here it its is are was were be been
being am do does did doing done have has had having will would shall should can could may might must of
to in on at by for with from into onto about as up down out over under again not no i me my we us our
you your he him his she her they them their what which who whom whose when where why how all any both
each few more most other some such only own same too very just s t d ll m re ve
"""

STOP_WORDS: frozenset[str] = frozenset(_CHINESE.split()) | frozenset(_ENGLISH.split())
"""Function words of Chinese and English, normalised."""
