"""How the report looks: one style sheet, for light and dark, for a phone and for paper.

Law: every colour of text has a contrast of 4.5 to 1 or more on its ground (WCAG 2.2, 1.4.3). What is wide scrolls
inside itself.
"""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--shade:#f6f8fa;
--well:#1a7f37;--bad:#b42318;--link:#0a5bc4}
@media screen and (prefers-color-scheme:dark){:root{--ground:#14171c;--ink:#e6e9ee;--dim:#9aa4b2;--line:#363c46;
--shade:#1d2229;--well:#56d364;--bad:#ff8f85;--link:#79b8ff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--ground);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3{line-height:1.25;margin:1.75rem 0 .5rem}
h1{font-size:1.6rem;margin-top:0}h2{font-size:1.25rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1rem}p{margin:.25rem 0}a{color:var(--link)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--link);outline-offset:2px}
code,pre{font:.875em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
header{border-left:.4rem solid var(--dim);background:var(--shade);padding:1rem;border-radius:.25rem}
header.well{border-color:var(--well)}header.bad{border-color:var(--bad)}
.well>.sign,.well>h1>.sign{color:var(--well)}.bad>.sign,.bad>h1>.sign{color:var(--bad)}
.kind{font-weight:400;color:var(--dim)}.dim{color:var(--dim)}
.wide{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{color:var(--dim);font-weight:600;white-space:nowrap}
tbody th{font-weight:600;min-width:9.5rem}td.number,th.number{text-align:right}
.examples td{min-width:6rem;max-width:30rem}.examples td code{display:block;min-width:10rem}
figure{margin:.5rem 0;border:1px solid var(--line);border-radius:.25rem}figure>svg{display:block;margin:0 auto}
details{margin:.5rem 0}summary{cursor:pointer;padding:.25rem 0}
dl{display:grid;grid-template-columns:minmax(6rem,max-content) 1fr;gap:.25rem 1rem;margin:.5rem 0}
dt{color:var(--dim)}dd{margin:0}ul{padding-left:1.25rem;margin:.5rem 0}
pre{margin:0;padding:.75rem;background:var(--shade)}
@media print{body{max-width:none;padding:0}.wide{overflow:visible}section{break-inside:avoid-page}
details::details-content{content-visibility:visible;block-size:auto}}
"""
