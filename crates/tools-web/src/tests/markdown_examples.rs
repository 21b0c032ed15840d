//! HTML to Markdown, by example.

use crate::html_to_markdown::{MarkdownStyle, render_html};
use url::Url;

fn markdown(html: &str) -> String {
    render_html(html, &Url::parse("https://a.example/dir/page").unwrap(), MarkdownStyle::default())
}

fn plain(html: &str) -> String {
    let style = MarkdownStyle { plain: true, ..MarkdownStyle::default() };
    render_html(html, &Url::parse("https://a.example/dir/page").unwrap(), style)
}

fn check(rows: &[(&str, &str)]) {
    for (html, expected) in rows {
        assert_eq!(markdown(html), *expected, "\n{html}");
    }
}

#[test]
fn paragraphs_and_headings_stand_apart() {
    check(&[
        ("<h1> A <b>b</b>\n c</h1><p>x  y\n z<p>w", "# A **b** c\n\nx y z\n\nw"),
        ("<div>a</div><div>b<span> c</span></div>", "a\n\nb c"),
        ("<p>a<br>b<br><br>c</p>", "a\nb\n\nc"),
        ("<h2><a class=headerlink href='#x'>¶</a>T<a href='#y'>#</a></h2>", "## T"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<blockquote><p>a</p><p>b<ul><li>c</ul></blockquote>d", "> a\n>\n> b\n>\n> - c\n\nd"),
        (
            "x<!-- c --><script>1</script><style>p{}</style><template>t</template><svg><text>s</text></svg>y",
            "xy",
        ),
        ("<p>&nbsp;a&nbsp; b </p>", "a b"),
        ("", ""),
    ]);
}

#[test]
fn lists_nest_and_number() {
    check(&[
        ("<ul><li>a<li><p>b</p><p>c</p></ul>d", "- a\n- b\n\n  c\n\nd"),
        ("<ul><li>a<ul><li>b<ol><li>c</li><li>d</ol></ul><li>e</ul>", "- a\n  - b\n    1. c\n    2. d\n- e"),
        ("<ol start=9><li>i<li>j<li value=20>k</ol>", "9. i\n10. j\n20. k"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        ("<ul><li></li><li><a href='/x'></a></li><li>z</ul>", "- z"),
        (
            "<ul><li><input type=checkbox checked> done<li><input type=checkbox>open</ul>",
            "- [x] done\n- [ ] open",
        ),
        ("<dl><dt>t<dd>d1<dd>d2</dl>", "**t**\n: d1\n: d2"),
        ("<ul><li><pre>a\n  b</pre>c</ul>", "- ```\n  a\n    b\n  ```\n\n  c"),
    ]);
}

#[test]
fn links_and_pictures_are_absolute() {
    check(&[
        ("<a href='../up?q=1'>t</a>", "[t](https://a.example/up?q=1)"),
        ("<a href='//b.example/w_(x)'> t </a>end", "[t](https://b.example/w_%28x%29) end"),
        ("<a href='#part'>t</a> <a href='javascript:x()'>u</a><a>v</a>", "t uv"),
        ("<a href='/x'><h3>T</h3><p>sub</p></a>", "### [T sub](https://a.example/x)"),
        (
            "<a href='/x'><img src='i.png' alt='A [b]'></a>",
            "[![A b](https://a.example/dir/i.png)](https://a.example/x)",
        ),
        (
            "<img src='data:image/png;base64,AAAA' alt='blob'><img src='data:x' data-src='/late.png'>",
            "blob![](https://a.example/late.png)",
        ),
        ("<img src='/p.gif' width=1 height=1>x", "x"),
        ("<img srcset='/a.png 1x, /b.png 2x' alt=''>", "![](https://a.example/a.png)"),
        ("<a href='/x'>a [b] c</a> [d]", "[a \\[b\\] c](https://a.example/x) [d]"),
    ]);
}

#[test]
fn emphasis_and_code_keep_their_edges() {
    check(&[
        ("a<b> b </b>c <i>d</i><em></em>", "a **b** c *d*"),
        ("<b><strong>x</strong></b> <del>y</del>", "**x** ~~y~~"),
        ("<b><p>x</p><p>y</p></b>", "x\n\ny"),
        ("<code>a `b`</code> <code>c  d</code> <kbd>Ctrl</kbd>", "`` a `b` `` `c d` `Ctrl`"),
        (
            "2 * 3 *x* snake_case _y_ `z` # no <b>1. b</b>",
            "2 * 3 \\*x\\* snake_case \\_y_ \\`z\\` # no **1. b**",
        ),
        (
            "<p># a<p>- b<p>1. c<p>&gt; d<p>1.5 e<p>&lt;b> f",
            "\\# a\n\n\\- b\n\n1\\. c\n\n\\> d\n\n1.5 e\n\n\\<b> f",
        ),
        ("10<sup>6</sup> H<sub>2</sub>O<sup><a href='#1'>[1]</a></sup>", "10^6 H2O[1]"),
    ]);
}

#[test]
fn code_blocks_name_their_language() {
    check(&[
        (
            "<pre><code class='language-rust'>fn a() {\n\n    b()\n}\n</code></pre>x",
            "```rust\nfn a() {\n\n    b()\n}\n```\n\nx",
        ),
        ("<div class='highlight highlight-source-js'><pre>a</pre></div>", "```js\na\n```"),
        (
            "<div class='highlight-python notranslate'><div class=highlight><pre>a</pre></div></div>",
            "```\na\n```",
        ),
        ("<pre class='brush: php; gutter: false'>a</pre>", "```php\na\n```"),
        ("<pre class='sourceCode c++'>a</pre>", "```c++\na\n```"),
        ("<pre><code class='hljs bash'>a</code></pre>", "```bash\na\n```"),
        ("<pre data-lang=go>a</pre>", "```go\na\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<pre>a<br>b<span class=lineno>7</span><button>Copy</button></pre>", "```\na\nb\n```"),
        ("<pre><div class=line>a</div><div class=line>b</div></pre>", "```\na\nb\n```"),
        (
            "<table class=rouge-table><tr><td class='gutter'><pre>1\n2</pre><td class=code><pre>x\ny</pre></table>",
            "```\nx\ny\n```",
        ),
    ]);
}

#[test]
fn tables_keep_their_cells() {
    check(&[
        (
            "<table><caption>C</caption><thead><tr><th>a<th>b</thead><tr><td>1|2<td><p>x</p><p>y</p></table>z",
            "C\n\n| a | b |\n| --- | --- |\n| 1\\|2 | x y |\n\nz",
        ),
        (
            "<table><tr><th colspan=2>w<th>c<tr><td rowspan=2>r<td>1<td>2<tr><td>3<td>4</table>",
            "| w | | c |\n| --- | --- | --- |\n| r | 1 | 2 |\n| r | 3 | 4 |",
        ),
        ("<table><tr><td>only<tr><td>layout</table>", "only\nlayout"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a b"),
        (
            "<table><tr><td><a href='/x'>l</a><td><code>a|b</code></table>",
            "| [l](https://a.example/x) | `a\\|b` |\n| --- | --- |",
        ),
        ("<table><tr><th>a<th>b<tr><td><td>  </table>", "| a | b |\n| --- | --- |"),
        ("<table></table>", ""),
    ]);
    let outer = "<table><tr><td>m<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>";
    assert!(markdown(outer).ends_with("| a | b |\n| --- | --- |\n| 1 | 2 |"), "{}", markdown(outer));
}

#[test]
fn formulas_are_text() {
    check(&[
        ("<math alttext='x^2'><mi>x</mi></math>", "$x^2$"),
        (
            "<span class=katex><span class=katex-mathml><math><semantics><mi>e</mi><annotation encoding='application/x-tex'>e^{i}</annotation></semantics></math></span><span class=katex-html>e i</span></span>",
            "$e^{i}$",
        ),
        ("a <script type='math/tex; mode=display'>\\int x</script> b", "a\n\n$$\\int x$$\n\nb"),
        (
            "<span class=mwe-math-element><span class=mwe-math-mathml-inline style='display: none'><math alttext='{y}'></math></span><img class=mwe-math-fallback-image-inline src=/y.svg alt=y></span>",
            "${y}$",
        ),
        ("<math><mi>x</mi><mo>+</mo><mn>1</mn></math>", "x+1"),
    ]);
}

#[test]
fn what_a_reader_cannot_see_is_left_out() {
    check(&[
        ("a<span style='display : none'>b</span><p hidden>c</p><i style='visibility:hidden'>d</i>e", "ae"),
        ("<p style='font-size:0px'>x</p><p style='opacity: 0.0'>y</p><p style='opacity:0.5'>z</p>", "z"),
        ("<noscript>n</noscript><button>b</button><select><option>o</select>t", "t"),
    ]);
}

#[test]
fn plain_text_has_no_marks() {
    let html = "<h1>T</h1><p>a <b>b</b> <a href='/x'>c_d</a> <code>e*</code><ul><li>i</ul><table><tr><th>x<th>y<tr><td>1<td>2</table><pre>p\n q</pre>";
    assert_eq!(plain(html), "T\n\na b c_d e*\n\n- i\n\nx\ty\n1\t2\n\np\n q");
}
