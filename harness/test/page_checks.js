// Checks of a report's page, for evaluation in a browser. structure(), room(), figures(), contrast()
// and tools() return an array of faults. The file is one expression, an object. A test evaluates
// (FILE).name().
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

    // The page is not wider than the window, and elements that scroll can be reached by keyboard.
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

    // Figures are as wide as the page, their texts are within them, and no text lies on another one.
    figures() {
        const faults = [], page = document.querySelector('main');
        const room = page.clientWidth - parseFloat(getComputedStyle(page).paddingLeft) * 2;
        for (const f of document.querySelectorAll('figure')) {
            const svg = f.querySelector('svg'), all = svg.getBoundingClientRect();
            if (Math.abs(f.clientWidth - room) > 1 || all.width < f.clientWidth - 1) faults.push(`${svg.id} is ${all.width} wide in ${f.clientWidth} of ${room}`);
            const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim()).map(t => [t, t.getBoundingClientRect()]);
            const slack = all.width / svg.viewBox.baseVal.width; // one unit of the figure
            for (const [i, [t, b]] of texts.entries()) {
                const name = `'${t.textContent.slice(0, 40)}' in ${svg.id}`;
                if (b.left < all.left - slack || b.right > all.right + slack || b.top < all.top - slack || b.bottom > all.bottom + slack) faults.push(`${name} is cut`);
                for (const [u, c] of texts.slice(i + 1)) {
                    const across = Math.min(b.right, c.right) - Math.max(b.left, c.left), down = Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top);
                    if (across > slack && down > 4 * slack) faults.push(`${name} lies on '${u.textContent.slice(0, 40)}'`);
                }
            }
        }
        return faults;
    },

    // The contrast of text with its background: at least 4.5 to 1, for large text 3 to 1 (WCAG 2.2,
    // 1.4.3).
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
        const shapes = new Map(); // for each drawing: its rectangles, which may lie under its text
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

    // Every table can be sorted and searched, and what is saved and copied has the rows that are
    // shown. Expected orders are computed here from the cells, without the page's script.
    async tools() {
        const faults = [], tables = [...document.querySelectorAll('.scroll table')];
        const number = s => Number(s.replace('\u2212', '-'));
        for (const t of tables) {
            const body = t.tBodies[0], shown = () => [...body.rows].filter(r => !r.hidden), texts = () => shown().map(r => r.textContent);
            const tools = t.closest('.scroll').previousElementSibling, original = texts().join('\n');
            const heads = [...t.tHead.rows[t.tHead.rows.length - 1].cells];
            if (!tools || !tools.matches('.tools')) { faults.push(`no tools at ${t.id}`); continue; }
            heads.forEach((h, i) => {
                const button = h.querySelector('button');
                if (!button) { if (h.textContent.trim()) faults.push(`no button in head ${i} of ${t.id}`); return; }
                const cells = () => shown().map(r => r.cells[i].textContent.trim()).filter(s => s && s !== '-' && s !== '–');
                const numeric = cells().every(s => !isNaN(number(s)));
                const sorted = way => cells().every((s, k, all) => !k || (numeric ? way * (number(s) - number(all[k - 1])) >= 0 : true));
                button.click();
                if (h.getAttribute('aria-sort') !== 'ascending' || !sorted(1)) faults.push(`column ${i} of ${t.id} does not ascend`);
                button.click();
                if (h.getAttribute('aria-sort') !== 'descending' || !sorted(-1)) faults.push(`column ${i} of ${t.id} does not descend`);
                button.click();
                if (h.hasAttribute('aria-sort') || texts().join('\n') !== original) faults.push(`column ${i} of ${t.id}: the first order does not return`);
            });
            const input = tools.querySelector('input'), word = body.rows[body.rows.length - 1].cells[0].textContent.trim();
            const search = s => { input.value = s; input.dispatchEvent(new Event('input')); };
            search(word);
            const want = [...body.rows].filter(r => word.toLowerCase().split(/\s+/).every(w => [...r.cells].map(c => c.textContent).join(' ').toLowerCase().includes(w)));
            if (shown().length !== want.length || !shown().every(r => want.includes(r))) faults.push(`search in ${t.id}: ${shown().length} rows, not ${want.length}`);
            const kept = URL.createObjectURL, saved = [];
            URL.createObjectURL = blob => { saved.push(blob); return 'data:,'; };
            HTMLAnchorElement.prototype.click = () => {};
            [...tools.querySelectorAll('button')].find(b => /Download/.test(b.textContent)).click();
            URL.createObjectURL = kept;
            delete HTMLAnchorElement.prototype.click;
            const lines = saved.length === 1 ? (await saved[0].text()).replace(/^\ufeff/, '').split('\r\n') : [];
            if (lines.length !== want.length + 2) faults.push(`${t.id} is saved in ${lines.length} lines for ${want.length} rows`);
            let copied = '';
            Object.defineProperty(navigator, 'clipboard', {value: {writeText: async s => { copied = s; }}, configurable: true});
            [...tools.querySelectorAll('button')].find(b => /Copy/.test(b.textContent)).click();
            await new Promise(done => setTimeout(done));
            delete navigator.clipboard;
            const rows = copied.split('\n').slice(0, -1).map(s => s.split('\t').length);
            if (rows.length !== want.length + 1 || rows.some(n => n !== heads.length)) faults.push(`${t.id} is copied in ${rows.length} lines for ${want.length} rows`);
            search('no row has this text');
            if (shown().length) faults.push(`search in ${t.id} finds what is not there`);
            search('');
            if (texts().join('\n') !== original) faults.push(`search in ${t.id} does not end`);
        }
        return tables.length ? faults : ['no table'];
    },

    // The number of elements that the tab key must reach.
    stops() {
        return [...document.querySelectorAll('a[href],summary,input,button,[tabindex="0"]')].filter(e => {
            const group = e.type === 'radio' && !e.checked; // a group of radio buttons is one stop
            return !group && e.checkVisibility();
        }).length;
    },

    // The element in focus: its tag and its place in the page, after "unseen" if its focus is not
    // visible. "" if no element is in focus.
    focus() {
        const e = document.activeElement, style = getComputedStyle(e);
        const label = e.nextElementSibling && e.matches('input') ? getComputedStyle(e.nextElementSibling) : style;
        const shown = [style, label].some(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0);
        return e === document.body ? '' : `${shown ? '' : 'unseen '}${e.tagName.toLowerCase()}.${e.className || e.id} ${[...document.querySelectorAll('*')].indexOf(e)}`;
    },
})
