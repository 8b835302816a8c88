/* assets.S - embeds the style sheets, the script of the page and the paper's reported figures as strings. */
    .section .rodata
    .global asset_page_css
    .type asset_page_css, @object
asset_page_css:
    .incbin "harness/view/page.css"
    .byte 0
    .size asset_page_css, . - asset_page_css
    .global asset_figure_css
    .type asset_figure_css, @object
asset_figure_css:
    .incbin "harness/view/figure.css"
    .byte 0
    .size asset_figure_css, . - asset_figure_css
    .global asset_page_js
    .type asset_page_js, @object
asset_page_js:
    .incbin "harness/view/page.js"
    .byte 0
    .size asset_page_js, . - asset_page_js
    .global asset_paper_json
    .type asset_paper_json, @object
asset_paper_json:
    .incbin "harness/view/paper.json"
    .byte 0
    .size asset_paper_json, . - asset_paper_json
    .section .note.GNU-stack, "", %progbits
