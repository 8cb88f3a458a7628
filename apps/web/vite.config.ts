import preact from '@preact/preset-vite';
import { defineConfig } from 'vite';

// The compiler's own output is in dist/server and dist/app; the page that browsers load is in dist/page.
export default defineConfig({
  plugins: [preact()],
  base: './',
  build: {
    outDir: 'dist/page',
    emptyOutDir: true,
    target: 'es2022',
    rollupOptions: {
      input: { index: 'index.html', sw: 'src/push/sw.ts' },
      // A service worker's name is its identity.
      output: { entryFileNames: ({ name }) => (name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js') },
    },
  },
});
