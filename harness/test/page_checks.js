// What a report's page must keep, asked inside a browser: every function gives an array of faults.
// An expression, so that a debugger can evaluate it: ({structure, ...})[name]().
({
    // Language, title, landmarks, headings, names, links.
    structure() {
        const faults = [], all = q => [...document.querySelectorAll(q)];
        const one = q => { if (all(q).length !== 1) faults.push(`${all(q).length} of ${q}`); };
        if (!document.documentElement.lang) faults.push('no language');
        if (!document.title) faults.push('no title');
        ['main', 'h1', 'header', 'footer', 'nav'].forEach(one);
        let last = 0;
        for (const h of all('h1,h2,h3,h4,h5,h6')) {
            const level = +h.tagName[1];
            if (level > last + 1) faults.push(`heading '${h.textContent}' of level ${level} after level ${last}`);
            last = level;
        }
        const ids = all('[id]').map(e => e.id);
        ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => faults.push(`id ${id} twice`));
        for (const key of ['aria-labelledby', 'aria-describedby'])
            for (const e of all(`[${key}]`))
                for (const id of e.getAttribute(key).split(' '))
                    if (!document.getElementById(id)) faults.push(`${key} of ${e.tagName}: no ${id}`);
        for (const a of all('a[href^="#"]'))
            if (!document.getElementById(a.hash.slice(1))) faults.push(`a link to ${a.hash}, which is not there`);
        for (const t of all('table')) {
            const columns = [...t.rows].map(r => [...r.cells].reduce((n, c) => n + c.colSpan, 0));
            if (new Set(columns).size !== 1) faults.push(`rows of unequal length in ${t.id}`);
            if (!t.caption || !t.caption.textContent.trim()) faults.push(`no caption in ${t.id}`);
            for (const h of t.querySelectorAll('th')) if (!h.scope) faults.push(`a head without scope in ${t.id}`);
        }
        return faults;
    },

    // Nothing is wider than the window but what scrolls, and what scrolls can be reached by keyboard.
    room() {
        const faults = [], page = document.documentElement;
        if (page.scrollWidth > innerWidth + 1) faults.push(`the page is ${page.scrollWidth} wide, the window ${innerWidth}`);
        for (const e of document.querySelectorAll('body *')) {
            const style = getComputedStyle(e), scrolls = v => v === 'auto' || v === 'scroll';
            const moves = (scrolls(style.overflowX) && e.scrollWidth > e.clientWidth + 1) ||
                          (scrolls(style.overflowY) && e.scrollHeight > e.clientHeight + 1);
            if (moves && e.checkVisibility() && e.getAttribute('tabindex') !== '0' && !e.querySelector('a[href],summary,input'))
                faults.push(`<${e.tagName.toLowerCase()} class="${e.className}"> scrolls, but not by keyboard`);
        }
        return faults;
    },

    // Text against what lies behind it: 4.5 to 1, 3 to 1 where it is large (WCAG 2.2, 1.4.3).
    contrast() {
        const faults = new Map();
        const rgba = s => { const n = s.match(/[\d.]+/g); return n && /^rgb/.test(s) ? [...n.slice(0, 3).map(Number), n[3] === undefined ? 1 : +n[3]] : null; };
        const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3])).concat(1);
        const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
        const behind = e => {
            const layers = [];
            for (; e; e = e.parentElement) {
                const c = rgba(getComputedStyle(e).backgroundColor);
                if (c && c[3]) layers.push(c);
                if (c && c[3] === 1) break;
            }
            return layers.reverse().reduce((under, top) => over(top, under), matchMedia('(prefers-color-scheme:dark)').matches && !matchMedia('print').matches ? [18, 18, 18, 1] : [255, 255, 255, 1]);
        };
        const shapes = new Map(); // of a drawing: what may lie under its text
        const under = text => {
            const svg = text.ownerSVGElement, box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
            if (!shapes.has(svg)) shapes.set(svg, [...svg.querySelectorAll('rect')].map(r => [r, r.getBoundingClientRect()]));
            let color = behind(svg);
            for (const [r, b] of shapes.get(svg)) {
                const style = getComputedStyle(r), fill = rgba(style.fill);
                if (fill && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom && r.compareDocumentPosition(text) & 4)
                    color = over([...fill.slice(0, 3), fill[3] * style.fillOpacity * style.opacity], color);
            }
            return color;
        };
        const look = (e, color, back) => {
            const style = getComputedStyle(e), size = parseFloat(style.fontSize), bold = +style.fontWeight >= 600;
            if (!color || !color[3]) return;
            const is = ratio(over(color, back), back), want = size >= 24 || (bold && size >= 18.6) ? 3 : 4.5;
            if (is < want) faults.set(`${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} in ${e.parentElement.tagName.toLowerCase()}: ${color} on ${back.map(Math.round)}`, `${is.toFixed(2)} '${e.textContent.trim().slice(0, 30)}'`);
        };
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const seen = new Set();
        for (let t; (t = walk.nextNode());) {
            const e = t.parentElement;
            if (!t.data.trim() || seen.has(e) || !e.checkVisibility()) continue;
            seen.add(e);
            if (!(e instanceof SVGElement)) look(e, rgba(getComputedStyle(e).color), behind(e));
            else if (e.closest('text')) look(e, rgba(getComputedStyle(e).fill), under(e.closest('text')));
        }
        return [...faults].map(([what, how]) => `contrast ${how}, ${what}`);
    },

    // What the tabulator must come by, as many as there are; the browser counts what it came by.
    stops() {
        return [...document.querySelectorAll('a[href],summary,input,[tabindex="0"]')].filter(e => {
            const group = e.type === 'radio' && !e.checked; // one stop a group
            return !group && e.checkVisibility();
        }).length;
    },

    // The element in focus, and whether one sees that it is.
    focus() {
        const e = document.activeElement, style = getComputedStyle(e);
        const label = e.nextElementSibling && e.matches('input') ? getComputedStyle(e.nextElementSibling) : style;
        const shown = [style, label].some(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0);
        return e === document.body ? '' : `${shown ? '' : 'unseen '}${e.tagName.toLowerCase()}.${e.className || e.id} ${[...document.querySelectorAll('*')].indexOf(e)}`;
    },
})
