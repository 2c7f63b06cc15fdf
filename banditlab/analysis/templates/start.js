document.documentElement.classList.add("js"); // before anything is laid out: what only stands in for the script is not shown
