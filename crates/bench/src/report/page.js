(function(){
"use strict";
// A line through all figures of one run at the same moment.
document.querySelectorAll("figure.time").forEach(function(figure){
  var plots=figure.querySelectorAll(".plot"),lines=[];
  plots.forEach(function(plot){
    var line=document.createElement("i");
    line.className="cursor";line.style.display="none";
    plot.appendChild(line);lines.push(line);
  });
  function move(event){
    var svg=event.target.closest&&event.target.closest(".plot");
    svg=svg&&svg.querySelector("svg");
    if(!svg)return;
    var box=svg.getBoundingClientRect(),share=(event.clientX-box.left)/box.width;
    lines.forEach(function(line,at){
      var own=plots[at].querySelector("svg").getBoundingClientRect(),out=plots[at].getBoundingClientRect();
      line.style.display=share<0||share>1?"none":"block";
      line.style.left=(own.left-out.left+share*own.width)+"px";
      line.style.top=(own.top-out.top)+"px";
      line.style.bottom=(out.bottom-own.bottom)+"px";
    });
  }
  figure.addEventListener("pointermove",move);
  figure.addEventListener("pointerleave",function(){lines.forEach(function(line){line.style.display="none";});});
});
var command=document.getElementById("command");
if(command&&navigator.clipboard){
  var button=document.createElement("button");
  button.textContent="Copy";
  button.onclick=function(){navigator.clipboard.writeText(command.textContent);button.textContent="Copied";};
  command.after(button);
}
})();
