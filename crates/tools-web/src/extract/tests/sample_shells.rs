//! Sample sites: the same content in the markup of different generators.

pub const SHELLS: &[(&str, &str)] = &[
    (
        "a news site",
        "<!doctype html><html lang=en><head><title>Growing fruit - Daily</title><meta property='og:type' content='article'></head><body>\
         <header class='site-header'><nav><ul><li><a href='/'>Home page menu</a></li><li><a href='/w'>World</a></li></ul></nav></header>\
         <main><article><h1>Growing fruit</h1><div class='byline'>By Ann Lee</div><p>The garden has been dry for weeks, and the trees carry less \
         than they did a year ago, said the keeper, who has watched them for decades.</p>CONTENT<p>More rain is expected at the end of the month, \
         which should help the later sorts, although nobody knows for certain.</p></article><aside class='related'><a href='/r'>Other story</a></aside></main>\
         <footer>All rights reserved</footer><div id='cookie-banner'>We use cookies to serve you.</div></body></html>",
    ),
    (
        "a manual by Sphinx",
        "<html><head><title>Using it &mdash; Manual</title><meta name='generator' content='Docutils, Sphinx 7'></head><body>\
         <div class='related' role='navigation'><a href='/'>Home page menu</a></div><div class='document'><div class='documentwrapper'><div class='bodywrapper'>\
         <div class='body' role='main'><section id='using'><h1>Using it<a class='headerlink' href='#using'>¶</a></h1><p>This part explains how the tool is used from \
         the first start to the last, with all of its settings, step by step.</p>CONTENT<p>See the next chapter for what can go wrong, and how to put it right again.</p>\
         </section></div></div></div><div class='sphinxsidebar'><a href='/toc'>Contents</a></div></div><div class='footer'>All rights reserved</div></body></html>",
    ),
    (
        "documentation by Docusaurus",
        "<html><head><title>Guide | Thing</title><meta name=generator content='Docusaurus v3'></head><body><nav class='navbar'><a href='/'>Home page menu</a></nav>\
         <div class='main-wrapper'><aside class='theme-doc-sidebar-container'><ul class='menu__list'><li><a href='/docs/a'>A</a></li></ul></aside>\
         <main class='docMainContainer'><div class='row'><div class='col'><article><div class='theme-doc-markdown markdown'><header><h1>Guide</h1></header>\
         <p>Everything that is needed to get going stands here, in the order in which it will be needed.</p>CONTENT<p>When all of this is done, go on with \
         the reference, which names every setting.</p></div></article><nav class='pagination-nav'><a href='/docs/b'>Next</a></nav></div></div></main></div>\
         <footer class='footer'>All rights reserved</footer></body></html>",
    ),
    (
        "a blog by WordPress",
        "<html><head><title>My week &#8211; Blog</title><meta name='generator' content='WordPress 6.5'></head><body class='single has-sidebar'>\
         <div id='page'><div id='masthead'><ul class='menu'><li><a href='/'>Home page menu</a></li></ul></div><div id='content' class='site-content'>\
         <div id='primary' class='content-area'><div class='post type-post hentry'><h1 class='entry-title'>My week</h1><div class='entry-content'><p>It was a long week, \
         with much to do in the shop and little time to write any of it down here.</p>CONTENT<p>Next week will be quieter, I hope, and then there will be pictures as well.</p>\
         <div class='sharedaddy'><a href='#'>Share</a></div></div></div></div><div id='secondary' class='widget-area'>Recent posts</div></div>\
         <div id='colophon' class='site-footer'>All rights reserved</div></div></body></html>",
    ),
    (
        "a wiki",
        "<html><head><title>Fruit - Wiki</title><meta name='generator' content='MediaWiki 1.41'></head><body><div id='mw-head'><div role='navigation' class='vector-menu'>\
         <a href='/'>Home page menu</a></div></div><div id='content' class='mw-body' role='main'><h1 id='firstHeading'>Fruit</h1><div id='bodyContent'><div id='mw-content-text'>\
         <div class='mw-parser-output'><p><b>Fruit</b> is what grows on trees and bushes; most of it can be eaten, and some of it should not be.</p>CONTENT\
         <p>It has been grown for thousands of years, in gardens and on fields, all over the world.</p></div></div></div></div>\
         <div id='footer' role='contentinfo'>All rights reserved</div></body></html>",
    ),
    (
        "a forum by Discourse",
        "<html><head><title>How do I do this? - Community</title><meta name='generator' content='Discourse 3.2'></head><body><header class='d-header'><a href='/'>Home page menu</a></header>\
         <div id='main-outlet' role='main'><h1>How do I do this?</h1><div itemscope itemtype='http://schema.org/DiscussionForumPosting' id='post_1' class='topic-body crawler-post'>\
         <span itemprop='author'>ann</span><div class='post' itemprop='text'><p>I have tried all that I could think of, and it still does not work as it should, so I ask here.</p>CONTENT</div></div>\
         <div id='post_2' class='topic-body crawler-post'><span itemprop='author'>bob</span><div class='post'><p>You have to turn it off and on again, as always, and then it will work for a while.</p></div></div></div>\
         <footer class='container'>All rights reserved</footer></body></html>",
    ),
    (
        "a shop",
        "<html><head><title>Lamp | Shop</title><meta property='og:type' content='product'><script type='application/ld+json'>{\"@type\":\"Product\",\"name\":\"Lamp\"}</script></head>\
         <body><header><nav><a href='/'>Home page menu</a></nav></header><main><div class='product'><h1>Lamp</h1><div class='price'>$19.00</div><form action='/cart'><button>Add to cart</button></form>\
         <div class='product-description'><p>A lamp that stands where others fall, in three colours, with a foot of iron and a shade of linen.</p>CONTENT\
         <p>Comes with a bulb, a second bulb, and a book about bulbs.</p></div></div></main><footer>All rights reserved</footer></body></html>",
    ),
    (
        "a page laid out with tables",
        "<html><head><title>Old page</title></head><body><table width='100%'><tr><td class='nav'><a href='/'>Home page menu</a></td></tr><tr><td>\
         <table><tr><td><font size=2><p>This page has been here since the beginning and has never been changed since, which is why it looks like this.</p>CONTENT\
         <p>Write to me when something is wrong, and I will put it right within the year.</p></font></td></tr></table></td></tr><tr><td class='footer'>All rights reserved</td></tr></table></body></html>",
    ),
];
