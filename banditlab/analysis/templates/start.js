document.documentElement.classList.add("js"); // before anything is laid out: room for what the script draws
